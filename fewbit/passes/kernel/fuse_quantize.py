"""A static quantization, done before the floats that it reads are stored.

A product of integers that gives floats also gives them in whole steps, where the next layer's step
is known, and so does max pooling. If nothing else reads the floats, they are never stored. Others
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
    """Let products of integers give the integers of the next layer."""

    name = "fuse-quantize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                kernel.MatmulOp: _product,
                kernel.Conv2dOp: _product,
                kernel.Pool2dOp: _pool,
                mico.QuantizeOp: _quantize,
            },
        )
        dce(op)


def constant_step(op: mico.QuantizeOp) -> float | None:
    """The scale of a quantization by one number that is known, and without a zero point."""
    scale = op.scale.owner
    if op.zero_point is not None or not isinstance(scale, arith.ConstantOp):
        return None
    return scale.value.value.data if isinstance(scale.value, FloatAttr) else None


def _product(op: kernel.ProductOp) -> Sequence[SSAValue] | None:
    if op.is_float or not op.gives_floats:
        return None
    found = _reader(op)
    if found is None:
        return None
    made = op.changed([op.result.type, found.result.type], step=_step(found))
    return [made.result]


def _pool(op: kernel.Pool2dOp) -> Sequence[SSAValue] | None:
    if op.kind.data != "max" or (found := _reader(op)) is None:
        return None
    types = [op.result.type, found.result.type]
    properties = op.properties | {"step": _step(found)}
    return [kernel.Pool2dOp.of(op.x, result_types=types, **properties).result]


def _reader(op: kernel.ProductOp | kernel.Pool2dOp) -> mico.QuantizeOp | None:
    """The first op that reads a result in steps, if the result is not in steps yet."""
    if op.step is not None:
        return None
    users = (use.operation for use in op.result.uses)
    return next((u for u in users if isinstance(u, mico.QuantizeOp) and _is_counted(u)), None)


def _step(found: mico.QuantizeOp) -> Attribute:
    return FloatAttr(constant_step(found) or 0.0, f64)


def _is_counted(op: mico.QuantizeOp) -> bool:
    """Whether a kernel can count such steps."""
    step, width = constant_step(op), mico.element_width(op.result.type)
    return step is not None and width is not None and Steps.of(step, width) is not None


def _quantize(op: mico.QuantizeOp) -> Sequence[SSAValue] | None:
    """What the op in front gives already."""
    made = op.input.owner
    if not isinstance(made, kernel.ProductOp | kernel.Pool2dOp) or made.step is None:
        return None
    if made.quantized is None or made.step.value.data != constant_step(op):
        return None
    return [made.quantized] if made.quantized.type == op.result.type else None
