"""A static quantization, done before the floats that it reads are stored.

An integer contraction that gives floats also gives them quantized, where the next layer's step is
known, and so does max pooling. If nothing else reads the floats, they are never stored. Others
may read them, and with other steps: the op takes the step of one reader, and equal ones are the
same reader since `cse`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import kernel, mico
from fewbit.kernels.steps import Steps
from fewbit.passes.linalg.building.driver import lower_ops


@dataclass(frozen=True)
class FuseQuantize(ModulePass):
    """Let integer contractions give the integers of the next layer."""

    name = "fuse-quantize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                kernel.MatmulOp: _contraction,
                kernel.Conv2dOp: _contraction,
                kernel.Pool2dOp: _pool,
                mico.QuantizeOp: _quantize,
            },
        )
        dce(op)


def constant_step(op: mico.QuantizeOp) -> float | None:
    """Return the scale of a quantization by one number that is known, and without a zero point."""
    scale = op.scale.owner
    if op.zero_point is not None or not isinstance(scale, arith.ConstantOp):
        return None
    return scale.value.value.data if isinstance(scale.value, FloatAttr) else None


def _contraction(op: kernel.ContractionOp) -> Sequence[SSAValue] | None:
    if op.is_float or not op.gives_floats:
        return None
    reader = _reader(op)
    if reader is None:
        return None
    fused = op.with_changes([op.result.type, reader.result.type], step=_step(reader))
    return [fused.result]


def _pool(op: kernel.Pool2dOp) -> Sequence[SSAValue] | None:
    if op.kind.data != "max" or (reader := _reader(op)) is None:
        return None
    types = [op.result.type, reader.result.type]
    properties = op.properties | {"step": _step(reader)}
    return [kernel.Pool2dOp.of(op.x, result_types=types, **properties).result]


def _reader(op: kernel.ContractionOp | kernel.Pool2dOp) -> mico.QuantizeOp | None:
    """Return the first op that quantizes a result, if it is not quantized yet."""
    if op.step is not None:
        return None
    users = (use.operation for use in op.result.uses)
    return next((u for u in users if isinstance(u, mico.QuantizeOp) and _is_countable(u)), None)


def _step(reader: mico.QuantizeOp) -> Attribute:
    return FloatAttr(constant_step(reader) or 0.0, f64)


def _is_countable(op: mico.QuantizeOp) -> bool:
    """Return whether a kernel can quantize by such a step."""
    step, width = constant_step(op), mico.element_width(op.result.type)
    return step is not None and width is not None and Steps.of(step, width) is not None


def _quantize(op: mico.QuantizeOp) -> Sequence[SSAValue] | None:
    """Return what the op in front gives already."""
    producer = op.input.owner
    if not isinstance(producer, kernel.ContractionOp | kernel.Pool2dOp) or producer.step is None:
        return None
    if producer.quantized is None or producer.step.value.data != constant_step(op):
        return None
    return [producer.quantized] if producer.quantized.type == op.result.type else None
