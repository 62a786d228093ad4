"""An einsum of two tensors as one contraction, with the order of dimensions that it asks for.

torch-mlir makes a matmul of it, and transposes all around it. Where a matmul can read the first
operand's rows and the second's columns as they are, and write its result so, that would only cost
time: attention to keys in blocks, `hrd,hbdk->hrbk`, is one op here. What multiplies a constant is a
layer, and is left to the passes that recognize it, as are all other equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.fx import Node
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from fewbit.dialects import mico
from fewbit.frontends.torch.aten import Arguments, converts
from fewbit.passes.linalg.building.layers import contract
from fewbit.passes.linalg.building.loops import loops, read
from fewbit.passes.linalg.building.tensors import Size, sizes_of

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter


@converts("einsum")
def einsum(emitter: Emitter, node: Node, a: Arguments):
    operands, equation = a["tensors"], a["equation"].replace(" ", "")
    if len(operands) != 2 or any(x.meta["val"].dtype != torch.float32 for x in operands):
        return None
    inputs, _, output = equation.partition("->")
    lhs, _, rhs = inputs.partition(",")
    if not is_matmul(lhs, rhs, output):
        return None
    x, y = (emitter.value(operand) for operand in operands)
    if any(isinstance(value.owner, mico.GetConstantOp) for value in (x, y)):
        return None
    block = Block()
    with ImplicitBuilder(block):
        result = _contract(x, y, lhs, rhs, output)
    for op in list(block.ops):
        op.detach()
        emitter.add(op)
    return [result]


def is_matmul(lhs: str, rhs: str, output: str) -> bool:
    """Return whether rows of the first operand are multiplied by columns of the second."""
    letters = (lhs, rhs, output)
    if not all(text.isalpha() and len(set(text)) == len(text) for text in letters):
        return False
    summed = (set(lhs) & set(rhs)) - set(output)
    rows, columns = set(lhs) - set(rhs), output[-1]
    if summed != {lhs[-1]} or set(lhs + rhs) != summed | set(output):
        return False
    return len(rows) == 1 and columns == rhs[-1] and columns not in lhs


def _contract(x: SSAValue, y: SSAValue, lhs: str, rhs: str, output: str) -> SSAValue:
    order = output + lhs[-1]
    index = dict(zip(order, loops(len(order)), strict=True))
    sizes: dict[str, Size] = dict(zip(lhs, sizes_of(x), strict=True))
    sizes |= dict(zip(rhs, sizes_of(y), strict=True))
    return contract(
        read(x, *(index[letter] for letter in lhs)),
        read(y, *(index[letter] for letter in rhs)),
        [index[letter] for letter in output],
        [sizes[letter] for letter in output],
        f32,
        fused=True,
    )
