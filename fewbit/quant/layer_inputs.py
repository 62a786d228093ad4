"""What layers of a program are given, shown as the interpreter runs it on sample data.

The interpreter shows what ops give, not what they receive. So it runs a copy of the program in
which a cast that changes nothing stands before each layer, and looks at the casts. Layers that are
given the same value have one cast. State starts from its initial value in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Sized
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.tensor import CastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.base.progress import progress
from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.interpreter import Interpreter
from fewbit.interpreter.values import Value
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from fewbit.program.state import initial_state
from fewbit.quant.observer import no_data

Inputs = Sequence[NDArray[Any]]


def observe_inputs(
    program: Program,
    data: Iterable[Inputs],
    wanted: Collection[str],
    see: Callable[[tuple[str, ...], Value], None],
    title: str,
) -> set[str]:
    """Run a program on data; call `see` with what layers are given, and the names of the layers.

    Returns those of the wanted layers that there are.
    """
    copy = Program(program.module.clone(), program.store)
    casts = _cast_inputs(copy, wanted)

    def observe(op: Operation, results: Sequence[Value]) -> None:
        if op in casts:
            see(casts[op], results[0])

    interpreter = Interpreter(copy.module, copy.store, observe=observe)
    state = initial_state(copy.module, copy.store)
    total = len(data) if isinstance(data, Sized) else None
    batches = 0
    with progress(title, total=total) as step:
        for inputs in data:
            interpreter.call(None, _with_state(inputs, state))
            batches += 1
            step()
    if not batches:
        raise no_data()
    return {name for names in casts.values() for name in names}


def _cast_inputs(program: Program, wanted: Collection[str]) -> dict[Operation, tuple[str, ...]]:
    """Return casts of layers' inputs, and the names of the layers that are given them."""
    casts: dict[SSAValue, CastOp] = {}
    names: dict[Operation, tuple[str, ...]] = {}
    for name, ops in layers(program.module).items():
        for op in ops:
            if not isinstance(op, QuantizedLayerOp) or name not in wanted:
                continue
            value = op.operands[0]
            if value not in casts:
                casts[value] = CastOp(value, cast(TensorType[Attribute], value.type))
                casts[value].location = op.location
                Rewriter.insert_op(casts[value], InsertPoint.before(op))
            names[casts[value]] = (*names.get(casts[value], ()), name)
    return names


def _with_state(inputs: Inputs, state: dict[int, NDArray[Any]]) -> list[Any]:
    given = iter(inputs)
    count = len(inputs) + len(state)
    if not state or any(number >= count for number in state):
        return list(inputs)
    return [state[i].copy() if i in state else next(given) for i in range(count)]
