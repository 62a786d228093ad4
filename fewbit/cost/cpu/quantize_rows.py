"""The work of quantizing rows: each is read twice, from memory and then from near."""

from __future__ import annotations

from typing import cast

from fewbit.cost.cpu.kernel_call import KernelCall, MatrixSizes
from fewbit.cost.cpu.work import Work, counts
from fewbit.kernels import QuantizeRows


@counts(QuantizeRows)
def quantize_rows(call: KernelCall, work: Work) -> None:
    s, lanes = cast(MatrixSizes, call.sizes), call.kernel.isa.lanes
    rows = -(-s.m // call.threads)
    footprint = s.m * s.k * 5
    work.add("rows.calls", 1)
    work.add("rows.rows", rows)
    work.add("rows.vectors", rows * -(-s.k // lanes))
    work.stream("rows.x", 4 * rows * s.k, footprint)
    work.stream("rows.x", 4 * rows * s.k, 5 * s.k)
    work.stream("rows.y", rows * s.k, footprint)
