"""What the functions of `fewbit.language.torch_ops` become: an op of ours, or one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.fx import Node
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import SSAValue

from fewbit.dialects import mico
from fewbit.frontends.torch.aten import Arguments, converts, layer
from fewbit.language.torch_ops import HIGH, LOW, ROTATE
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import Unary, apply

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter

HALF = 4
"""Bits of half a byte."""


@converts(ROTATE)
def rotate(emitter: Emitter, node: Node, a: Arguments):
    return layer(emitter, mico.HadamardOp, node, a["x"], block=a["block"])


@converts(LOW)
def low_half(emitter: Emitter, node: Node, a: Arguments):
    def body(byte: SSAValue) -> SSAValue:
        up = arith.ShLIOp(byte, s.constant(HALF, i8)).result
        return s.to_float(arith.ShRSIOp(up, s.constant(HALF, i8)).result)

    return _apply(emitter, a, body)


@converts(HIGH)
def high_half(emitter: Emitter, node: Node, a: Arguments):
    def body(byte: SSAValue) -> SSAValue:
        return s.to_float(arith.ShRSIOp(byte, s.constant(HALF, i8)).result)

    return _apply(emitter, a, body)


def _apply(emitter: Emitter, a: Arguments, body: Unary) -> list[SSAValue]:
    given = emitter.value(a["x"])
    with emitter.building():
        return [apply(given, f32, body)]
