"""`mico.hadamard` as a call of a kernel; blocks that are no whole vectors are left to loops."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import f32

from fewbit.dialects.mico import HadamardOp, element_type
from fewbit.kernels.rotate_blocks import RotateBlocks
from fewbit.passes.kernel.call_site import CallSite, dynamic_axes, shape_of

ENOUGH = 8192
"""Numbers that are worth sharing."""


class RotateBlocksCall(CallSite[HadamardOp]):
    def run(self) -> None:
        op, block = self.op, self.op.block.value.data
        width = shape_of(op.input)[-1]
        if element_type(op.input.type) != f32 or width < 0:
            return
        if not RotateBlocks.takes(self.isa, block):
            return
        sizes = [
            self.make(tensor.DimOp(op.input, self.index(axis))) for axis in dynamic_axes(op.input)
        ]
        x, y = self.buffer(op.input), self.allocate(f32, shape_of(op.input), sizes)
        rotate = self.calls.use(RotateBlocks(self.isa, block))
        stub = self.stub("rotate", [x.type, y.type])
        given, to = stub.memrefs
        blocks = stub.product([*given.sizes[:-1], width // block])
        stub.call_kernel(rotate, given.pointer, to.pointer, blocks)
        self.call(stub, [x, y], self.iterations(op.input, range(len(given.sizes)), ENOUGH))
        self.replace(self.as_tensor(y))
