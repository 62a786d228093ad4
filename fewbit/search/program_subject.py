"""Programs under search: compiled for this machine, candidate by candidate.

Models of ONNX, Keras, JAX and TensorFlow are programs when they arrive. A candidate is quantized
and compiled as `fewbit compile` would do it, so what is measured is what is deployed.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from fewbit.errors import FloatWeightsWarning
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from fewbit.quant.recipe import Recipe
from fewbit.search.data import Examples
from fewbit.search.objective import Array
from fewbit.search.subject import ArraySubject, Schemes

BATCH = 256


class ProgramSubject(ArraySubject):
    """A float program."""

    how = "compiled"

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self._compiling = threading.Lock()

    def outputs(self, schemes: Schemes, part: Examples) -> Array:
        from fewbit.targets.compile import compile

        with self._compiling:
            artifact = compile(quantize_program(self.program, schemes), "cpu", name="candidate")
        pieces = [artifact.run(*inputs)[0] for inputs in self._pieces(part)]
        return np.concatenate(pieces)[: len(part)]

    def _pieces(self, part: Examples) -> Iterator[list[Any]]:
        """Yield inputs of the size that the program takes; the last piece may repeat examples."""
        shape = self.program.signature.inputs[0].shape or (None,)
        size = shape[0] or BATCH
        for start in range(0, len(part), size):
            index = np.arange(start, start + size)
            kept = index[index < len(part)] if shape[0] is None else index % len(part)
            yield [x[kept] for x in part.inputs]


def quantize_program(program: Program, schemes: Schemes) -> Program:
    """Return the program as a candidate has it; weights that no layer reads stay float."""
    few = {name: scheme for name, scheme in schemes.items() if not scheme.is_float}
    if not few:
        return program
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloatWeightsWarning)
        return quantize(program, Recipe.by_name(few))
