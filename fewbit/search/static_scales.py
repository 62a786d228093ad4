"""Static scales of activations in a search: by layer and width, calibrated once.

Scales follow from the float model and examples that nothing is chosen by. So those of a candidate
are looked up, and what is deployed has the same numbers: they are written beside its recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fewbit.numerics import Width
from fewbit.quant.calibration import Calibration
from fewbit.quant.observer import Method
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme

METHOD: Method = "mse"
"""What a scale covers: with few bits the largest magnitude is far too much."""


@dataclass(frozen=True)
class StaticScales:
    """The scales of one model."""

    by_width: Mapping[Width, Calibration]
    examples: str
    """The hash of the examples that they come from."""

    @staticmethod
    def find(
        names: Iterable[str],
        widths: Iterable[Width],
        calibrate: Callable[[Recipe], Calibration],
        examples: str,
    ) -> StaticScales:
        """Calibrate layers at some widths of activations."""
        names = list(names)
        by_width = {
            width: calibrate(
                Recipe.by_name(dict.fromkeys(names, LayerScheme(act=width, static=True)))
            )
            for width in widths
        }
        return StaticScales(by_width, examples)

    @property
    def how(self) -> str:
        """What the scales depend on, as it is kept."""
        return f"static scales by {METHOD} on {self.examples}"

    def of(self, schemes: Mapping[str, LayerScheme]) -> Calibration:
        """Return the scales of layers whose activations are static."""
        scales: dict[str, float] = {}
        for name, scheme in schemes.items():
            if scheme.static and scheme.act is not None:
                known = self.by_width[scheme.act]
                # Tables of embeddings have no activations.
                if name in known:
                    scales[name] = known[name]
        return Calibration(scales)
