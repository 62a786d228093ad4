"""What is searched: a model that can be run as any recipe would have it.

A subject knows its float program, from which costs and layers come, and measures candidates. A
PyTorch module is measured as such, with weights and activations rounded as compiled programs round
them; a model that is a program already is compiled for this machine, candidate by candidate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from hashlib import sha256

from fewbit.errors import UsageError
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.scheme import LayerScheme
from fewbit.search.data import Examples
from fewbit.search.objective import Array, Metrics, Objective, measure
from fewbit.search.static_scales import StaticScales

Schemes = Mapping[str, LayerScheme]
FLOAT: Schemes = {}


class Subject(ABC):
    """A model under search."""

    program: Program
    """It as a float program, batch norms folded."""
    kind: str
    """How candidates are run, in a word or two."""
    can_train = False
    scales: StaticScales | None = None
    """Static scales of activations, where candidates may have them."""

    @property
    def how(self) -> str:
        """How candidates are run, as it is stored with what they gave."""
        return self.kind if self.scales is None else f"{self.kind}, {self.scales.how}"

    def use_static_scales(self, part: Examples, widths: Iterable[Width]) -> None:
        """Let candidates have static scales of these widths, which come from some examples."""
        raise UsageError(
            f"static scales of activations are not searched for {self.kind}",
            hint="leave --act-scales out",
        )

    def static_scales(self, schemes: Schemes) -> Calibration:
        """Return the static scales that a candidate needs."""
        if not any(scheme.static for scheme in schemes.values()):
            return Calibration()
        if self.scales is None:
            raise UsageError(
                "a scheme has static scales of activations, and none were calibrated",
                hint="add --act-scales static",
            )
        return self.scales.of(schemes)

    @abstractmethod
    def measure(self, schemes: Schemes, part: Examples, objective: Objective) -> Metrics:
        """Return all numbers of a candidate on some examples; without schemes, of the float model.

        It may be called by several threads at once.
        """

    def parts(self) -> Iterable[object]:
        """Return what may be of classes that no other machine knows."""
        return ()

    def hash(self) -> str:
        """Return a hash of everything that decides what the model computes."""
        return sha256(self.program.text().encode()).hexdigest()[:16]


class ArraySubject(Subject):
    """A subject whose outputs are an array, compared with those of the float model."""

    def __init__(self) -> None:
        self._references: dict[str, Array] = {}

    @abstractmethod
    def outputs(self, schemes: Schemes, part: Examples) -> Array:
        """Return what a candidate computes."""

    def reference(self, part: Examples) -> Array:
        """Return what the float model computes."""
        key = part.hash()
        if key not in self._references:
            self._references[key] = self.outputs(FLOAT, part)
        return self._references[key]

    def measure(self, schemes: Schemes, part: Examples, objective: Objective) -> Metrics:
        reference = self.reference(part)
        outputs = self.outputs(schemes, part) if schemes else reference
        return measure(outputs, reference, part.labels, objective)
