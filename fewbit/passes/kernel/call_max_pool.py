"""Max pooling as a call of a generated kernel; means are left to loops."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from fewbit.dialects import kernel
from fewbit.dialects.mico import element_type
from fewbit.dialects.mico.syntax import ints
from fewbit.kernels.max_pool import MaxPool, Pooled
from fewbit.passes.kernel.call_site import shape_of
from fewbit.passes.kernel.stored_results import StoringSite


class MaxPoolSite(StoringSite[kernel.Pool2dOp]):
    def run(self) -> None:
        op = self.op
        height, width = ints(op.kernel_size)
        if op.kind.data != "max" or (op.step is not None and self.steps is None):
            return
        if op.ceil_mode.value.data and min(shape_of(op.result)[1:3]) < 0:
            return
        output: Pooled = "steps" if self.steps is not None else "f32"
        if element_type(op.x.type) != f32:
            output = "i8"
        pool = self.calls.use(MaxPool(self.isa, output))
        stub, p = self.prepare_stub({"x": self.bytes(op.x)})
        x, y = self.memrefs["x"].sizes, self.memrefs[next(iter(self.results))].sizes
        (top, _), (left, _) = op.padding_pairs
        sizes = stub.integers([
            x[0], x[1], x[2], x[3], x[3], y[1], y[2], x[3], x[3], height, width,
            *ints(op.stride), top, left, 1, 1,
        ])  # fmt: skip
        stub.call_kernel(pool, p["x"], *self.outputs(p), sizes)
        self.finish(stub)

    def size(self, axis: int) -> SSAValue:
        if axis in (0, 3):
            return super().size(axis)
        place = axis - 1
        op = self.op
        return self.windows(
            axis,
            ints(op.kernel_size)[place],
            ints(op.stride)[place],
            sum(op.padding_pairs[place]),
        )
