"""From tiles to matrices, for weights of fewer than 8 bits, and for scales of groups.

With few rows, tiles take weights apart in registers, and the panel is read once, at the speed of
memory. With more, a part of the panel is taken apart beforehand, into a room on the stack, where it
is a panel of bytes for the tiles of all rows; meanwhile they ask for the next part. Sums of all
rows wait on the stack until the panel is done.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.dot import weights
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.group_scales import Groups
from fewbit.kernels.integer.output import Output, advance, finish, pointers
from fewbit.kernels.integer.tile import TALLEST, tile
from fewbit.kernels.pack import Panels
from fewbit.kernels.sweep import Weights, heights, highest_tile, row_of, shapes
from fewbit.kernels.tile import LINE
from fewbit.toolchain.isa import VNNI, Isa

ROOM = 32768
"""Bytes for weights that are taken apart: as much of the cache as rows and sums leave."""
MOST_ROWS = 128
"""Rows of a matrix that go over a panel at once: each time, it has to be taken apart."""
SWEEP = (
    "ptr table, i64 table_step, i64 tap_step, i64 rows, i64 taps, i64 depth, ptr w, "
    "i64 k_first, i64 k_total, i64 begins, i64 ends, ptr offsets, ptr scales, ptr sums, "
    "ptr w_scale, ptr bias, ptr add, {}, i64 y_step, i64 columns, "
    "i64 first, i64 last, float lo, float hi"
)


def few_rows(isa: Isa) -> int:
    """Rows of the highest tile that takes weights apart in registers."""
    return 4 if isa.step == 4 and isa.registers >= 32 else 2


def few_tiles(isa: Isa, bits: int) -> int:
    """Tiles that may take the same weights apart, before it is better done beforehand.

    With `vnni`, measured: a plane is one instruction, which three tiles may repeat; to put planes
    together is more, which is best done once.
    """
    if isa.dot != VNNI or bits == 8:
        return 2
    return 3 if len(Fields(isa, bits).planes) == 1 else 1


@cache
def take_apart(isa: Isa, vectors: int, bits: int) -> Function:
    """Weights as bytes: of each tap's `runs`, as many steps as there are."""
    fields = Fields(isa, bits)
    f = Function(
        isa,
        f"fewbit_take_apart_{fields.name}_{vectors}",
        "ptr w, i64 taps, i64 runs, i64 steps, ptr room",
        apart=True,
    )
    w, taps, runs, steps, room = f.parameters
    size = vectors * isa.lanes * isa.step
    with f.loop(0, taps, carried=[w]) as over_taps:
        tap = f.at(room, over_taps.index * steps * size, "i8")
        with f.loop(0, runs, carried=[*over_taps.carried, tap], hot=True) as loop:
            run, to = loop.carried
            stored = [weights(f, run, i) for i in range(fields.run_vectors * vectors)]
            for s in range(fields.run):
                for v in range(vectors):
                    f.store(fields.take(f, stored[v::vectors], s), to, s * vectors + v)
            loop.carry(
                f.at(run, fields.run_vectors * size, "i8"),
                f.at(to, fields.run * size, "i8"),
            )
        over_taps.carry(loop.results[0])
    return f


@cache
def sweep_few_bits(
    isa: Isa, output: Output, bits: int, groups: Groups | None, far: bool
) -> Function:
    """A block of rows times the panels `first` up to `last`, as `sweep` does it.

    Steps `k_first` and on, of `k_total`, are counted in runs. A tap is a group if there are groups;
    then offsets are one row for each.
    """
    fields, name = Fields(isa, bits), groups.name if groups else ""
    f = Function(
        isa,
        f"fewbit_sweep_{fields.name}{name}_{output}{'_far' if far else ''}",
        SWEEP.format(pointers(output)),
    )
    table, table_step, tap_step, rows, taps, depth, w, *given = f.parameters
    k_first, k_total, begins, ends, *given = given
    offsets, x_scales, sums, w_scale, bias, add, *outputs, y_step, n, first, last, lo, hi = given
    step, lanes, highest = isa.step, isa.lanes, few_rows(isa)
    cell = fields.run_vectors * step
    room = f.array("i8", ROOM + fields.unit * isa.panel_width) if bits < 8 else f.zeros()
    steps = f.ceiling(depth, step)
    runs = f.ceiling(steps, fields.run)
    packed = Weights(w, k_first, k_total, taps * runs, cell)
    panels = Panels.of(f, n)

    def scales(row: Value, tap: Value | int, column: Value) -> list[Value]:
        if groups is None:
            return []
        return [
            rows,
            f.at(offsets, rows * tap + row, "i32"),
            f.at(x_scales, rows * tap + row if groups.blocks else row),
            groups.panel(f, w_scale, column, taps, depth),
            f.integer(tap),
            taps,
        ]

    with f.loop(first, last) as over_panels:
        column, vectors = panels.at(f, over_panels.index)
        width = vectors * lanes
        panel = packed.panel(f, column, width, k_first)
        most = f.integer(ROOM) // (width * step) // fields.run * fields.run
        together = f.larger(most // steps, 1)
        deep = f.select(steps <= most, depth, most * step)
        few = rows <= highest * few_tiles(isa, bits)
        if groups:
            few = few | (steps > most)
        with f.when(few), heights(f, rows, highest) as (_, row, height):
            here = f.at(sums, row * width)
            f.switch(
                vectors * 64 + height,
                [
                    (number, tile(isa, r, v, bits, groups, far=far and r == 1))
                    for number, r, v in shapes(isa, highest)
                ],
                f.at(table, row, "ptr"),
                table_step,
                f.integer(0),
                tap_step,
                taps,
                depth,
                panel,
                panel,
                f.select(begins.differs(0), f.zeros(), here),
                here,
                *scales(row, 0, column),
            )
        blocks = f.select(few, 0, f.larger(taps, 1))  # an empty sum is 0
        with f.loop(0, blocks, together) as over_taps, f.loop(0, depth, deep) as along:
            tap, at = over_taps.index, along.index
            count, numbers = f.smaller(taps - tap, together), f.smaller(depth - at, deep)
            block_steps = f.ceiling(numbers, step)
            block_runs = f.ceiling(block_steps, fields.run)
            before = tap * runs + at // fields.unit
            block = f.at(panel, before * width, f"[{cell} x i8]")
            size = count * block_runs * width * cell
            if bits < 8:
                f.switch(
                    vectors,
                    [(v, take_apart(isa, v, bits)) for v in range(1, isa.tile_vectors + 1)],
                    block,
                    count,
                    block_runs,
                    block_steps,
                    room,
                )
            seen = f.at(table, tap * table_step, "ptr")
            starts = (tap + at).equals(0) & begins.differs(0)
            with heights(f, rows, highest_tile(f, vectors, TALLEST)) as (number, row, height):
                here = f.at(sums, row * width)
                asked = number * count * block_steps * LINE
                f.switch(
                    vectors * 64 + height,
                    [(number, tile(isa, r, v, 8, groups)) for number, r, v in shapes(isa, TALLEST)],
                    f.at(seen, row, "ptr"),
                    table_step,
                    tap * tap_step + at,
                    tap_step,
                    count,
                    numbers,
                    room if bits < 8 else block,
                    f.at(block, size + f.select(asked < size, asked, 0), "i8"),
                    f.select(starts, f.zeros(), here),
                    here,
                    *scales(row, tap, column),
                )
        with f.when(ends.differs(0)):
            f.call(
                finish(isa, output, groups is not None),
                sums,
                rows,
                width,
                offsets,
                x_scales,
                f.at(w_scale, column),
                row_of(f, bias, column),
                row_of(f, add, column),
                *advance(f, output, outputs, column),
                y_step,
                f.smaller(n - column, width),
                lo,
                hi,
            )
    return f
