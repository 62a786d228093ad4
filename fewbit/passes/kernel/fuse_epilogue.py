"""What follows a contraction, done before its kernel stores: a sum, an activation, bounds.

A kernel has its accumulators in registers; relu, relu6 and the sum with a residual cost nothing
there, and a pass over memory elsewhere, which silu and gelu save too. The contraction must be read
by nothing else, and the order of operations is the kernel's: sum, scales, bias, what is added,
activation, bounds. The fused op stands where the last part of it stood, so all that it reads has
been computed. A reshape between the two moves behind, as the epilogue works on single elements.
Bare integer accumulators have no epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.elementwise import ActivationOp
from fewbit.passes.kernel.layout.reshapes import reshape_to, simpler_reshape
from fewbit.passes.linalg.building.driver import lower_ops


@dataclass(frozen=True)
class FuseEpilogue(ModulePass):
    """Fuse activations and residual sums into the contractions in front of them."""

    name = "fuse-epilogue"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.ReluOp: _relu,
                mico.Relu6Op: _relu6,
                ActivationOp: _activation,
                mico.AddOp: _add,
                mico.ReshapeOp: simpler_reshape,
            },
        )
        dce(op)


@dataclass(frozen=True)
class Producer:
    """A contraction that gives floats, without bounds, read by one op, perhaps via a reshape."""

    op: kernel.ContractionOp
    reshape: mico.ReshapeOp | None

    def fuse(self, **more: SSAValue | Attribute) -> SSAValue:
        """Return the contraction with more of an epilogue, in the shape in which it was read."""
        fused = self.op.with_changes(self.op.result_types, **more)
        if self.reshape is None:
            return fused.result
        return mico.ReshapeOp.of(
            fused, shape=self.reshape.shape, result_types=self.reshape.result_types
        ).result


def _number(value: float) -> Attribute:
    return FloatAttr(value, f64)


def _producer(value: SSAValue) -> Producer | None:
    if not value.has_one_use():
        return None
    op, reshape = value.owner, None
    if isinstance(op, mico.ReshapeOp) and op.input.has_one_use():
        op, reshape = op.input.owner, op
    if not isinstance(op, kernel.ContractionOp) or not op.gives_floats or op.bounds != (None, None):
        return None
    return Producer(op, reshape)


def _relu(op: mico.ReluOp) -> Sequence[SSAValue] | None:
    producer = _producer(op.input)
    return None if producer is None else [producer.fuse(minimum=_number(0.0))]


def _relu6(op: mico.Relu6Op) -> Sequence[SSAValue] | None:
    producer = _producer(op.input)
    if producer is None:
        return None
    return [producer.fuse(minimum=_number(0.0), maximum=_number(6.0))]


def _activation(op: ActivationOp) -> Sequence[SSAValue] | None:
    producer = _producer(op.input)
    if producer is None or producer.op.activation is not None:
        return None
    return [producer.fuse(activation=StringAttr(op.activation))]


def _add(op: mico.AddOp) -> Sequence[SSAValue] | None:
    for product, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        producer = _producer(product)
        if producer is None or producer.op.add is not None or producer.op.activation is not None:
            continue
        if not product.type == other.type == op.result.type:
            continue
        if producer.reshape is None:
            return [producer.fuse(add=other)]
        shaped = reshape_to(other, producer.op.result.type)
        if shaped is not None:
            return [producer.fuse(add=shaped)]
    return None
