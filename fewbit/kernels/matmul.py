"""Matmul with a packed matrix: linear layers, and matmuls of two activations.

    void fewbit_matmul_f32(ptr a, i64 lda, ptr b_packed, ptr bias, ptr add, ptr c, i64 ldc,
                           i64 m, i64 n, i64 k, float lo, float hi, i64 thread, i64 threads)

c = clamp(f(a · b + bias + add), lo, hi), f being the activation, if there is one. `bias` and `add`,
which is laid out as c and may be c itself, may be null. Strides are in floats. b may be `stored` as
something narrower, which the name then says, as in `fewbit_matmul_f32f16`: keys and values that are
kept so.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UnsupportedError
from fewbit.kernels.activation import with_activation
from fewbit.kernels.cuts import Arithmetic, T
from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Floats, Kernel
from fewbit.kernels.pack import pack_panels
from fewbit.kernels.stored import NAMES, Stored, takes_stored
from fewbit.kernels.sweep import BLOCK_ROWS, part_of_sum, row_of, share, sweep
from fewbit.numerics.approximations.activations import Activation


def depth_of_block(f: Arithmetic[T], m: T, k: T) -> T:
    """Return how much of K is taken at once, for m rows."""
    # One tile of rows reads each weight once: then it is best read in one go.
    one_tile = m <= f.isa.tile_rows(f.isa.tile_vectors)
    blocks = f.select(one_tile, 1, f.ceiling(k, f.isa.block_depth))
    return f.larger(f.ceiling(k, f.larger(blocks, 1)), 1)


@dataclass(frozen=True)
class Matmul(Kernel):
    """A matmul with a matrix in panels, as `pack` or the kernel `PackB` makes them."""

    activation: Activation | None = None
    stored: Stored = "f32"
    """What the matrix is stored as."""

    def __post_init__(self) -> None:
        if not takes_stored(self.isa, self.stored):
            raise UnsupportedError(f"'{self.isa.name}' takes no matrix of {self.stored}")

    @property
    def symbol(self) -> str:
        return with_activation(f"fewbit_matmul_{NAMES[self.stored]}", self.activation)

    def pack(self, weight: Floats) -> Floats:
        """Return a layer's weight, [n, k], in panels."""
        return pack_panels(weight.T, self.isa)

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr a, i64 lda, ptr b_packed, ptr bias, ptr add, ptr c, i64 ldc, i64 m, i64 n, "
            "i64 k, float lo, float hi, i64 thread, i64 threads",
            public=True,
        )
        a, lda, b, bias, add, c, ldc, m, n, k, lo, hi, thread, threads = f.parameters
        row_first, row_last, first, last = share(f, m, n, k, thread, threads)
        table = f.array("ptr", BLOCK_ROWS)
        block = depth_of_block(f, m, k)
        with f.loop(row_first, row_last, BLOCK_ROWS) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, BLOCK_ROWS)
            c_row, add_row = f.at(c, row * ldc), row_of(f, add, row * ldc)
            with f.loop(0, k, block, hot=True) as over_k:
                start = over_k.index
                depth = f.smaller(k - start, block)
                with f.loop(0, rows) as loop:
                    f.store(f.at(a, (row + loop.index) * lda + start), table, loop.index)
                f.call(
                    sweep(self.isa, self.activation, self.stored),
                    table,
                    rows,
                    f.smaller(k, 1),
                    depth,
                    b,
                    start,
                    k,
                    *part_of_sum(f, start.equals(0), bias, add_row, c_row),
                    c_row,
                    ldc,
                    n,
                    first,
                    last,
                    f.select(k <= start + depth, 1, 0),
                    lo,
                    hi,
                )
        return f
