"""Matmul of bytes with packed weights: linear layers.

    void fewbit_matmul_i8_*(ptr x, i64 ldx, ptr w_packed, ptr x_scale, i64 rows_per_scale,
                            ptr w_scale, ptr bias, ptr add, ptr y, i64 ldy, i64 m, i64 n, i64 k,
                            float lo, float hi, i64 thread, i64 threads)

`output.py` says what y is. With scales for groups (`grouped`), k is `groups` groups of numbers, and
w_scale is in panels, by `pack_scale`:

    y = clamp(Σ (sum of group · x_scale · w_scale[n, group]) + bias + add, lo, hi)

    void fewbit_matmul_*_groups_f32(the same, with i64 groups after k)

With `blocks`, x_scale is [m, groups], and a group's sum is multiplied by its own of them.
With offsets (`shifted`), the weight w of b bits stands for w + 2^(b-1), and a group adds
(sum of group · x_scale · w_scale + sum of its x · x_scale · w_offset). The name says `offsets`, and
how scales and offsets are stored, if not as float: `f16` or `super` (`group_scales.py`). That it
ends with `far` says that a row prefetches weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuts import Arithmetic, T
from fewbit.kernels.emit import Function
from fewbit.kernels.integer.few_bits import MOST_ROWS
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.group_scales import Groups, ScaleStorage, takes_storage
from fewbit.kernels.integer.output import SCALED, Output, advance, pointers
from fewbit.kernels.integer.pack import pack_taps, unpack_taps, widen
from fewbit.kernels.integer.sweep import OFFSETS, Rows, sweep_of
from fewbit.kernels.kernel import Bytes, Floats, Kernel
from fewbit.kernels.sweep import BLOCK_ROWS, row_of, share
from fewbit.toolchain.isa import Isa


def parameters(output: Output, *, grouped: bool = False) -> str:
    return (
        "ptr x, i64 ldx, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale, ptr bias, "
        f"ptr add, {pointers(output)}, i64 ldy, i64 m, i64 n, i64 k, "
        f"{'i64 groups, ' if grouped else ''}float lo, float hi, i64 thread, i64 threads"
    )


def takes_groups(isa: Isa, k: int, groups: int) -> bool:
    """Return whether a row of k can have so many groups: equally long ones, of a step at least."""
    return k % groups == 0 and k // groups >= isa.step and groups <= OFFSETS


def takes_offsets(bits: int) -> bool:
    """Return whether stored weights of so many bits count from 0, on all processors."""
    return 2 <= bits < 8


def rows_of_groups(f: Arithmetic[T], groups: T, most: int) -> T:
    """Return rows that go over a panel at once where each group has offsets of its own."""
    return f.smaller(f.integer(OFFSETS) // groups, most)


@dataclass(frozen=True)
class IntegerMatmul(Kernel):
    """A matmul of bytes with a weight in panels."""

    output: Output = "f32"
    bits: int = 8
    """Bits of a stored weight; ternary ones have 2."""
    grouped: bool = False
    """Whether the weight has scales for groups along k; outputs are floats then."""
    unsigned: bool = False
    """Whether no number of x is negative; see `takes_unsigned`."""
    shifted: bool = False
    """Whether groups have offsets beside their scales."""
    storage: ScaleStorage = "f32"
    """How scales and offsets of groups are stored."""
    blocks: bool = False
    """Whether rows have scales for each group as well."""
    far: bool = False
    """Whether weights are read from memory, where the caches do not hold those of a program."""

    def __post_init__(self) -> None:
        if self.shifted and not (self.grouped and takes_offsets(self.bits)):
            raise UnsupportedError("offsets are for groups of weights of 2 to 7 bits")
        if self.blocks and not self.grouped:
            raise UnsupportedError("blocks of rows are groups of weights")
        if self.storage != "f32" and not (self.grouped and takes_storage(self.isa, self.storage)):
            raise UnsupportedError(f"'{self.isa.name}' takes no scales of groups as {self.storage}")

    @property
    def groups(self) -> Groups | None:
        return Groups(self.shifted, self.storage, self.blocks) if self.grouped else None

    @property
    def fields(self) -> Fields:
        return Fields(self.isa, self.bits, self.unsigned)

    @property
    def block_rows(self) -> int:
        """Rows that go over a panel at once."""
        return BLOCK_ROWS if self.bits == 8 and not self.grouped else MOST_ROWS

    @property
    def symbol(self) -> str:
        name = f"{self.fields.name}{self.groups.name if self.groups else ''}"
        return f"fewbit_matmul_{name}_{self.output}{'_far' if self.far else ''}"

    def pack(self, weight: Bytes, groups: int = 1) -> Bytes:
        """Return a layer's weight, [n, k], in panels."""
        n, k = weight.shape
        self._check(k, groups)
        taps = weight.T.reshape(groups, k // groups, n)
        return pack_taps(taps, self.fields)

    def pack_scale(
        self, scale: Floats, offset: Floats | None = None, *, depth: int = 0
    ) -> NDArray[Any]:
        """Return scales of groups, [n, groups], in panels; each followed by its offsets.

        `depth` is how many numbers a group has, where scales are stored as products.
        """
        return Groups(self.shifted, self.storage).pack(self.isa, scale, offset, depth)

    def unpack(self, packed: Bytes, n: int, k: int, groups: int = 1) -> Bytes:
        taps = unpack_taps(packed, groups, k // groups, n, self.fields)
        return taps.reshape(k, n).T

    def _check(self, k: int, groups: int) -> None:
        if groups == 1 and not self.grouped:
            return
        hint = "leave the layer to loop nests"
        if not self.grouped or self.output not in SCALED:
            raise UnsupportedError(f"'{self.symbol}' takes no groups", hint="set `grouped`")
        if not takes_groups(self.isa, k, groups):
            raise UnsupportedError(
                f"no kernel has {groups} groups of {k} numbers: groups are equally long, of "
                f"{self.isa.step} numbers at least, and {OFFSETS} at most",
                hint=hint,
            )

    def function(self) -> Function:
        fields, groups = self.fields, self.groups
        f = Function(
            self.isa,
            self.symbol,
            parameters(self.output, grouped=self.grouped),
            public=True,
        )
        x, ldx, w, x_scale, together, w_scale, bias, add, *more = f.parameters
        count = len(pointers(self.output).split(","))
        outputs = more[:count]
        ldy, m, n, k, *counts, lo, hi, thread, threads = more[count:]
        row_first, row_last, first, last = share(f, m, n, k, thread, threads)
        step = self.isa.step
        block = self.block_rows
        here = Rows.make(f, fields, block, groups)
        table = f.array("ptr", block)
        room = f.array("i8", block * step)
        one = f.integer(1)
        taps, depth, most = f.smaller(k, 1), f.larger(k, step), f.integer(block)
        if groups:
            (taps,) = counts
            depth, most = k // taps, rows_of_groups(f, taps, block)
        with f.loop(row_first, row_last, most) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, most)
            with f.loop(0, rows) as loop:
                f.store(f.at(x, (row + loop.index) * ldx, "i8"), table, loop.index)
            if groups and groups.blocks:
                here.take_blocks(f, x_scale, row, rows, taps)
            else:
                here.begin(f, self.output, x_scale, together, row, rows)
            if groups:
                here.clear(f, rows * taps)
                here.add_groups(f, table, rows, taps, depth, groups)
            else:
                with f.when(k < step):
                    f.call(widen(self.isa), table, rows, k, room)
                here.clear(f, rows)
                here.add(f, table, 0, 0, rows, taps, depth)
            f.call(
                sweep_of(fields, self.output, groups, far=self.far),
                table,
                0,
                depth,
                rows,
                taps,
                depth,
                w,
                0,
                taps * f.ceiling(f.ceiling(depth, step), fields.run),
                one,
                one,
                here.offsets,
                here.scales,
                here.sums,
                w_scale,
                bias,
                row_of(f, add, row * ldy),
                *advance(f, self.output, outputs, row * ldy),
                ldy,
                n,
                first,
                last,
                lo,
                hi,
            )
        return f
