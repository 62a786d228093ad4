"""Quantization as the verbs do it: by a recipe, with scales and integers that data decides on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.cli.options import CalibrationMethod
from fewbit.cli.text_file import read_text
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.program.program import Program
    from fewbit.program.tensor_file import Array
    from fewbit.quant.calibration import Calibration
    from fewbit.quant.given import GivenWeights

SAMPLES = 128
SCALES = ".json"
"""Ends the name of a file with scales, which `fewbit search` and `Calibration.save` write."""
WINDOW, WINDOWS = 128, 8
"""Tokens of a sample of text, and how many samples GPTQ sees; a layer's inputs are all of them."""


@dataclass(frozen=True)
class CalibrationOptions:
    """What was said on the command line; None and nothing where it was not."""

    data: list[str] | None = None
    method: CalibrationMethod | None = None
    samples: int | None = None
    keep_batch_norm: bool = False
    strict: bool = False
    measures: bool = False
    """Whether the verb runs the program on the data, which then need not make any scales."""
    gptq: str | None = None
    """What integers are chosen by: a text of a language model, or data."""

    def quantize(
        self,
        program: Program,
        recipe: str | None,
        otherwise: Sequence[Sequence[Array]] | None = None,
    ) -> Program:
        """Return the program quantized by the recipe; as it is without one.

        Batch norms become part of layers first: what is deployed has none. Where no data is given,
        static scales are those of the inputs `otherwise`.
        """
        from fewbit.quant.quantize import quantize
        from fewbit.quant.weights import refuse_floats

        self._check(recipe)
        if recipe is None:
            if self.strict:
                refuse_floats(program)
            return program
        program = self.fold(program)
        calibration = self._calibration(program, recipe, otherwise)
        weights = self._choose_weights(program, recipe)
        return quantize(program, recipe, calibration, strict=self.strict, weights=weights)

    def fold(self, program: Program) -> Program:
        """Return the float program that is quantized: its batch norms are part of layers.

        This, and not the one that was imported, is what a quantized program is compared with: a
        layer that took over a batch norm gives other values than before.
        """
        from fewbit.passes.graph.fold_batch_norm import fold_batch_norm

        return program if self.keep_batch_norm else fold_batch_norm(program)

    def _check(self, recipe: str | None) -> None:
        if recipe is None and self.data:
            raise UsageError("--calibrate needs a recipe", hint="add -r w8a8-static, for example")
        if self.data:
            return
        if self.method is not None or (self.samples is not None and self.gptq is None):
            option = "--samples" if self.method is None else "--calibration-method"
            raise UsageError(f"{option} needs data", hint="add --calibrate DATA")

    def _choose_weights(self, program: Program, recipe: str) -> GivenWeights | None:
        """Return integers by GPTQ, where they are asked for."""
        from fewbit.quant.gptq import gptq

        return None if self.gptq is None else gptq(program, self._gptq_data(program), recipe)

    def _gptq_data(self, program: Program) -> list[list[Array]]:
        """Return windows of a text for a language model, and data as it is for any other."""
        from fewbit.language.samples import text_samples
        from fewbit.language.text_files import SETTINGS
        from fewbit.quant.sample_data import SUFFIXES, read_samples

        assert self.gptq is not None
        path = Path(self.gptq)
        if SETTINGS in program.files:
            text, windows = read_text(path), self.samples or WINDOWS
            return text_samples(program, text, window=WINDOW, windows=windows)
        if path.is_file() and path.suffix not in SUFFIXES:
            raise UsageError(
                f"'{path.name}' is no array, and the model is no language model that takes text",
                hint="give .npy or .npz files with inputs of the model",
            )
        return read_samples(program.signature, [path], self.samples or SAMPLES)

    def _calibration(
        self, program: Program, recipe: str, otherwise: Sequence[Sequence[Array]] | None
    ) -> Calibration | None:
        from fewbit.quant.program_calibration import calibrate_program
        from fewbit.quant.quantize import schemes_of
        from fewbit.quant.sample_data import NAMED

        schemes = schemes_of(program, recipe)
        static = [name for name, scheme in schemes.items() if scheme.static]
        if not static:
            self._check_dynamic()
            return None
        if not self.data and otherwise is None:
            raise UsageError(
                f"the recipe asks for static scales ('{static[0]}': {schemes[static[0]]}), which "
                "come from data",
                hint="add --calibrate DATA: .npy or .npz files, a folder of them, or "
                + " or ".join(NAMED),
            )
        if (known := self._known_scales()) is not None:
            return known
        method = (self.method or CalibrationMethod.MINMAX).value
        given = self.inputs(program) if self.data else otherwise
        return calibrate_program(program, given or (), recipe, method)

    def _known_scales(self) -> Calibration | None:
        """Return scales that were calibrated before, where the data is the file that has them."""
        from fewbit.quant.calibration import Calibration

        if not self.data or self.has_samples:
            return None
        if len(self.data) > 1 or self.method is not None or self.samples is not None:
            raise UsageError(
                f"'{self.data[0]}' has scales, so nothing else is to be said of data",
                hint="give it alone",
            )
        return Calibration.load(self.data[0])

    def _check_dynamic(self) -> None:
        """Refuse what would have no effect where no scale is static."""
        if not self.data or (self.measures and self.method is None):
            return
        what, option = (
            ("a method", "--calibration-method")
            if self.measures
            else (
                "data",
                "--calibrate",
            )
        )
        raise UsageError(
            f"the recipe has no static scales, so {what} would have no effect",
            hint=f"write -static in the recipe (w8a8-static), or leave out {option}",
        )

    @property
    def has_samples(self) -> bool:
        """Whether there is data, and not only scales that came from some."""
        return bool(self.data) and Path(self.data[0]).suffix != SCALES

    def inputs(self, program: Program) -> list[list[Array]]:
        """Return the data as inputs of the program."""
        from fewbit.quant.sample_data import read_samples

        return read_samples(program.signature, self.data or [], self.samples or SAMPLES)
