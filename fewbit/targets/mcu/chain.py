"""What follows accumulators until each channel has one sum: a chain that a kernel computes.

Average pooling on integers rescales every accumulator, bounds it, and adds up a channel's. As loops
these are tensors of 32 bits as large as the layer's whole output, often the largest of a program.
A chain is element by element, with constants of a channel or of all, and ends in that sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fewbit.dialects import mico
from fewbit.llvm.types import Int, Type, Vector, scalar, with_element
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.function import Kernel

Array = np.ndarray[Any, Any]
Constant = Callable[[SSAValue], Array | None]
_BINARY: dict[type[Operation], Callable[[Value, Value], Value]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.ShLIOp: lambda a, b: a.shift_left(b),
    arith.ShRSIOp: lambda a, b: a.shift_right_signed(b),
}
_INTRINSICS: dict[type[Operation], str] = {arith.MaxSIOp: "smax", arith.MinSIOp: "smin"}
_CONVERSIONS: dict[type[Operation], str] = {arith.ExtSIOp: "sext", arith.TruncIOp: "trunc"}


@dataclass(frozen=True)
class Step:
    """An op on every element: a body, and the columns that its other arguments are; or relu."""

    op: Operation
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chain:
    steps: tuple[Step, ...]
    columns: tuple[tuple[str, Array], ...]
    """Constants, one for each channel."""

    @property
    def last(self) -> Operation:
        return self.steps[-1].op

    @property
    def name(self) -> str:
        """A name of what is computed: equal for equal texts."""
        return sha256("".join(_text(step) for step in self.steps).encode()).hexdigest()[:8]

    def apply(self, f: Kernel, value: Value, given: dict[str, Value]) -> Value:
        """Return what is added to a channel's sum, for an accumulator."""
        for step in self.steps:
            if not isinstance(step.op, linalg.GenericOp):
                zero = f.zero(value.type)
                value = f.intrinsic(f"smax.{_suffix(value.type)}", value.type, value, zero)
                continue
            value = _evaluate(f, step.op.body.block, value, [given[name] for name in step.columns])
        return value

    def erase(self) -> None:
        for step in reversed(self.steps):
            step.op.detach()
            step.op.erase()


def find_chain(accumulators: SSAValue, constant: Constant) -> Chain | None:
    """Return the chain that alone reads accumulators, if there is one to its end."""
    steps: list[Step] = []
    columns: list[tuple[str, Array]] = []
    value = accumulators
    while (use := value.get_user_of_unique_use()) is not None:
        if isinstance(use, mico.ReluOp):
            steps.append(Step(use))
        elif isinstance(use, linalg.GenericOp) and _is_understood(use):
            inputs = list(use.inputs)
            if inputs[:1] != [value] or not _is_identity(use, 0):
                return None
            if _sums_channels(use):
                return Chain((*steps, Step(use)), tuple(columns)) if len(inputs) == 1 else None
            found = [constant(each) for each in inputs[1:]]
            if not _is_elementwise(use) or any(array is None for array in found):
                return None
            names = tuple(f"c{len(columns) + i}" for i in range(len(found)))
            columns += [(n, a) for n, a in zip(names, found, strict=True) if a is not None]
            steps.append(Step(use, names))
        else:
            return None
        value = use.results[0]
    return None


def _is_understood(op: linalg.GenericOp) -> bool:
    known = (*_BINARY, *_INTRINSICS, *_CONVERSIONS, arith.ConstantOp, linalg.YieldOp)
    return all(type(inner) in known for inner in op.body.block.ops) and all(
        isinstance(a.type, IntegerType) for a in op.body.block.args
    )


def _dims(op: linalg.GenericOp, operand: int) -> list[int] | None:
    """Return the loops that an operand is indexed by."""
    found = op.indexing_maps.data[operand].data.results
    dims = [each.position for each in found if isinstance(each, AffineDimExpr)]
    return dims if len(dims) == len(found) else None


def _is_identity(op: linalg.GenericOp, operand: int) -> bool:
    return _dims(op, operand) == list(range(len(op.iterator_types)))


def _is_elementwise(op: linalg.GenericOp) -> bool:
    """Return whether other inputs are of channels, the last loop, or one number each."""
    last = len(op.iterator_types) - 1
    others = [_dims(op, i) for i in range(1, len(op.inputs))]
    kinds = {each.data.value for each in op.iterator_types}
    is_whole = _is_identity(op, len(op.inputs)) and kinds == {"parallel"}
    return is_whole and all(dims in ([last], []) for dims in others)


def _sums_channels(op: linalg.GenericOp) -> bool:
    """Return whether everything but images and channels is added up, from 0 on."""
    last = len(op.iterator_types) - 1
    if len(op.inputs) != 1 or _dims(op, 1) != [0, last]:
        return False
    start = op.outputs[0].owner
    if not isinstance(start, linalg.FillOp):
        return False
    first = start.inputs[0].owner
    is_zero = isinstance(first, arith.ConstantOp) and first.value == IntegerAttr(0, i32)
    end = cast("Operation", op.body.block.last_op).operands[0].owner
    return is_zero and isinstance(end, arith.AddiOp) and op.body.block.args[1] in end.operands


def _evaluate(f: Kernel, block: Block, value: Value, others: list[Value]) -> Value:
    """Write the ops of a body; the sum that a reduction adds to is 0."""
    known: dict[SSAValue, Value] = {}
    given = [value, *others, f.zero(value.type)]
    for argument, each in zip(block.args, given, strict=False):
        known[argument] = each
    for op in block.ops:
        operands = [known[operand] for operand in op.operands]
        if isinstance(op, linalg.YieldOp):
            return operands[0]
        bits = Int(cast("IntegerType", op.results[0].type).width.data)
        kind = cast("Int | Vector", with_element(value.type, bits))
        known[op.results[0]] = _write(f, op, operands, kind)
    raise AssertionError("a body ends with a yield")


def _write(f: Kernel, op: Operation, operands: list[Value], kind: Int | Vector) -> Value:
    if isinstance(op, arith.ConstantOp):
        return f.constant(kind, cast("IntegerAttr[Any]", op.value).value.data)
    if type(op) in _BINARY:
        return _BINARY[type(op)](*operands)
    if type(op) in _INTRINSICS:
        return f.intrinsic(f"{_INTRINSICS[type(op)]}.{_suffix(kind)}", kind, *operands)
    return f.convert(_CONVERSIONS[type(op)], operands[0], scalar(kind))


def _suffix(kind: Type) -> str:
    """Return a type as it ends the name of an intrinsic."""
    return f"v{kind.lanes}{kind.element}" if isinstance(kind, Vector) else str(kind)


def _text(step: Step) -> str:
    if not isinstance(step.op, linalg.GenericOp):
        return step.op.name
    ops = step.op.body.block.ops
    return ";".join(f"{o.name}{o.properties}{[r.type for r in o.results]}" for o in ops)
