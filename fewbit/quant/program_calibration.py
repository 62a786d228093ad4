"""Static activation scales of a program from sample data, one for each layer.

The interpreter shows what ops give, not what they receive. So it runs a copy of the program in
which the input of each layer passes through a cast that changes nothing, and looks at the casts.
Any float program can be calibrated, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.tensor import CastOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.base.progress import progress
from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.interpreter import Interpreter
from fewbit.interpreter.values import Value
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.observer import Method, Observers, no_data
from fewbit.quant.quantize import schemes_of
from fewbit.quant.recipe import RecipeLike

Inputs = Sequence[NDArray[Any]]


def calibrate_program(
    program: Program,
    data: Iterable[Inputs],
    recipe: RecipeLike,
    method: Method = "minmax",
    percentile: float = 99.99,
) -> Calibration:
    """The static scale of every layer whose activations the recipe quantizes.

    Each item of `data` is the program's inputs. Asymmetric layers get a zero point too; their
    method is "minmax".
    """
    observers = Observers(schemes_of(program, recipe), method, percentile)
    copy = Program(program.module.clone(), program.store)
    casts: dict[Operation, str] = {}
    for name, ops in layers(copy.module).items():
        for op in ops:
            if isinstance(op, QuantizedLayerOp) and name in observers:
                casts[_cast_input(op)] = name

    def observe(op: Operation, results: Sequence[Value]) -> None:
        if op in casts:
            observers.see(casts[op], results[0].astype(np.float32))

    interpreter = Interpreter(copy.module, copy.store, observe=observe)
    total = len(data) if isinstance(data, Sized) else None
    batches = 0
    with progress("Calibrating", total=total) as step:
        for inputs in data:
            interpreter.call(None, list(inputs))
            batches += 1
            step()
    if not batches:
        raise no_data()
    return observers.calibration(expected=set(casts.values()))


def _cast_input(op: QuantizedLayerOp) -> CastOp:
    value = op.operands[0]
    same = CastOp(value, cast(TensorType[Attribute], value.type))
    same.location = op.location
    Rewriter.insert_op(same, InsertPoint.before(op))
    op.operands[0] = same.dest
    return same
