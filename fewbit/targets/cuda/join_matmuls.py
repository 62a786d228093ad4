"""Linear layers of the same input as one matmul, whose result is sliced.

Queries, keys and values, or the two halves of a gated layer, are matmuls of one x. For few rows
the time is that of launches, and one launch for all of them reads the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, SymbolRefAttr, TensorType, f32, i64
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.ir.symbols import using
from fewbit.passes.graph.changed_weights import ChangedWeights, constant_of, is_constant
from fewbit.passes.linalg import lower_kernel
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.targets.cuda.call_layers import FEW_ROWS, rows_of
from fewbit.targets.cuda.settings import GpuSettings

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class JoinMatmuls(ModulePass):
    """Join linear layers of one input of few rows into one matmul."""

    name = "join-matmuls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        size = known.get(GpuSettings).open_size
        join_matmuls(known.program(op), lambda x: rows_of(x, size) <= FEW_ROWS)


def join_matmuls(program: Program, is_short: Callable[[SSAValue], bool]) -> None:
    """Join, in place, matmuls of one input where that `is_short`: has few rows."""
    changed = ChangedWeights(program)
    groups: dict[Hashable, list[kernel.MatmulOp]] = {}
    for op in changed.program.module.walk():
        if isinstance(op, kernel.MatmulOp) and (key := _key(op)) is not None and is_short(op.x):
            groups.setdefault(key, []).append(op)
    with using(changed.symbols):
        for ops in groups.values():
            if len(ops) > 1:
                _join(ops, changed)
        changed.sweep()


def _key(op: kernel.MatmulOp) -> Hashable | None:
    """Return what matmuls that can be joined have in common; None where one cannot be."""
    if op.multiplier is not None or op.step is not None or not op.gives_floats:
        return None
    if op.weight_offset is not None:
        return None
    if DYNAMIC in mico.shape_of(op.result.type):
        return None
    weight, scale = _weight_and_scale(op)
    if not is_constant(weight) or (scale is not None and not is_constant(scale)):
        return None
    groups = () if scale is None else mico.shape_of(scale.type)[1:]
    element = mico.element_type(weight.type)
    return op.parent_block(), op.x, op.x_scale, element, op.is_float, scale is None, groups


def _weight_and_scale(op: kernel.MatmulOp) -> tuple[SSAValue, SSAValue | None]:
    """Return the weight as it is stored, and its scale if it has few bits."""
    owner = op.weight.owner
    if isinstance(owner, mico.DequantizeOp) and owner.zero_point is owner.offset is None:
        return owner.input, owner.scale
    return op.weight, op.weight_scale


def _join(ops: list[kernel.MatmulOp], changed: ChangedWeights) -> None:
    first, *_ = ops
    weights = [_weight_and_scale(op)[0] for op in ops]
    counts = [mico.shape_of(weight.type)[0] for weight in weights]
    rows = np.concatenate([changed.read(weight) for weight in weights])
    name = f"{constant_of(weights[0]).sym_name.data}.joined"
    type = TensorType(mico.element_type(weights[0].type), rows.shape)
    scale = _scales(ops, counts, changed)
    like = None if scale is None else constant_of(weights[0])
    weight = changed.add(name, rows, type, first, like=like)
    if scale is not None:
        constant_of(weight).properties["scale"] = SymbolRefAttr(constant_of(scale).sym_name.data)
    if scale is not None and first.is_float:
        type = TensorType(f32, rows.shape)
        dequantized = mico.DequantizeOp.of(weight, scale, result_types=[type])
        Rewriter.insert_op(dequantized, InsertPoint.before(first))
        weight, scale = dequantized.result, None
    *outer, _ = mico.shape_of(first.result.type)
    whole = kernel.MatmulOp.of(
        first.x,
        weight,
        x_scale=first.x_scale,
        weight_scale=scale,
        result_types=[TensorType(mico.element_type(first.result.type), (*outer, sum(counts)))],
    )
    whole.location = first.location
    Rewriter.insert_op(whole, InsertPoint.before(first))
    at = 0
    for op, count in zip(ops, counts, strict=True):
        part = _slice(whole.result, at, op.result.type)
        part.location = op.location
        Rewriter.insert_op(part, InsertPoint.after(whole))
        block = Block()
        with ImplicitBuilder(block):
            value = lower_kernel.epilogue(op, part.result)
        epilogue = list(block.ops)
        for each in epilogue:
            each.detach()
            each.location = op.location
        Rewriter.replace_op(op, epilogue, [value])
        at += count


def _scales(
    ops: list[kernel.MatmulOp], counts: list[int], changed: ChangedWeights
) -> SSAValue | None:
    """Return a scale for each output, or for each of its groups."""
    scales: list[Array] = []
    for op, count in zip(ops, counts, strict=True):
        scale = _weight_and_scale(op)[1]
        if scale is None:
            return None
        values = changed.read(scale)
        scales.append(np.broadcast_to(values, (count, *values.shape[1:])))
    joined = np.concatenate(scales)
    scale = _weight_and_scale(ops[0])[1]
    assert scale is not None
    name = f"{constant_of(scale).sym_name.data}.joined"
    return changed.add(name, joined, TensorType(f32, joined.shape), ops[0])


def _slice(value: SSAValue, at: int, type: Any) -> tensor.ExtractSliceOp:
    shape = mico.shape_of(type)
    before = [0] * (len(shape) - 1)
    return tensor.ExtractSliceOp.build(
        operands=[value, [], [], []],
        result_types=[type],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, [*before, at]),
            "static_sizes": DenseArrayBase.from_list(i64, list(shape)),
            "static_strides": DenseArrayBase.from_list(i64, [1] * len(shape)),
        },
    )
