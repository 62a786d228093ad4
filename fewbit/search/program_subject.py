"""Programs under search: compiled for this machine, candidate by candidate.

Models of ONNX, Keras, JAX and TensorFlow are programs when they arrive. A candidate is quantized
and compiled as `fewbit compile` would do it, so what is measured is what is deployed.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fewbit.errors import FloatWeightsWarning
from fewbit.ir.layers import layers
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.quantize import quantize
from fewbit.quant.recipe import Recipe
from fewbit.search.data import Examples
from fewbit.search.objective import Array
from fewbit.search.portable import pack_program, unpack_program
from fewbit.search.static_scales import METHOD, StaticScales
from fewbit.search.subject import ArraySubject, Schemes

BATCH = 256
CALIBRATED = 64
"""Examples that static scales come from: the interpreter runs them."""


class ProgramSubject(ArraySubject):
    """A float program."""

    kind = "compiled"

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self._compiling = threading.Lock()

    def outputs(self, schemes: Schemes, part: Examples) -> Array:
        from fewbit.targets.compile import compile

        with self._compiling:
            program = quantize_program(self.program, schemes, self.static_scales(schemes))
            artifact = compile(program, "cpu", name="candidate")
        pieces = [artifact.run(*inputs)[0] for inputs in self._pieces(part)]
        return np.concatenate(pieces)[: len(part)]

    def use_static_scales(self, part: Examples, widths: Iterable[Width]) -> None:
        from fewbit.quant.program_calibration import calibrate_program

        few = part[slice(0, CALIBRATED)]

        def calibrate(recipe: Recipe) -> Calibration:
            return calibrate_program(self.program, list(self._pieces(few)), recipe, METHOD)

        names = layers(self.program.module)
        self.scales = StaticScales.find(names, widths, calibrate, few.hash())

    def __getstate__(self) -> dict[str, Any]:
        return {"files": pack_program(self.program), "scales": self.scales}

    def __setstate__(self, state: dict[str, Any]) -> None:
        program, self._folder = unpack_program(state["files"])
        self.__init__(program)
        self.scales = state["scales"]

    def _pieces(self, part: Examples) -> Iterator[list[Any]]:
        """Yield inputs of the size that the program takes; the last piece may repeat examples."""
        shape = self.program.signature.inputs[0].shape or (None,)
        size = shape[0] or BATCH
        for start in range(0, len(part), size):
            index = np.arange(start, start + size)
            kept = index[index < len(part)] if shape[0] is None else index % len(part)
            yield [x[kept] for x in part.inputs]


def quantize_program(
    program: Program, schemes: Schemes, scales: Mapping[str, float] | None = None
) -> Program:
    """Return the program as a candidate has it; weights that no layer reads stay float."""
    few = {name: scheme for name, scheme in schemes.items() if not scheme.is_float}
    if not few:
        return program
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloatWeightsWarning)
        return quantize(program, Recipe.by_name(few), Calibration.of(scales or {}))
