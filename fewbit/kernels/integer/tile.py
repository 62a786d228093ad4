"""The microkernel on integers: as the one on floats, with 32-bit accumulators.

Sums go to a small place on the stack, from which `finish` makes outputs; a sum that is cut goes on
from there. A row's last step ends where the row does: it reads some numbers once more, for which
the panel holds zeros.

Weights of fewer bits are unpacked in registers, a run of steps at a time: `few_bits.py` says
when that is better than doing so beforehand. With scales for groups of numbers, a group is a tap:
its sums become floats, which are added up on the stack. With offsets beside the scales, weights
count from 0, as they are stored, and the offsets of rows are the sums of their numbers, negated.

One row reads each weight once, as fast as memory gives it. Where a program's weights are in no
cache, a tile of one row prefetches what it will read, further ahead than a processor does by
itself; near weights would only take longer by it.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.emit import Function, Loop, Value
from fewbit.kernels.integer.dot import dot, weights
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.group_scales import Groups
from fewbit.kernels.tile import LINE, Sums, grid
from fewbit.llvm.types import I32, Vector
from fewbit.toolchain.isa import Isa

TALLEST = 10
"""Rows of a tile, at most: with more, pointers of rows are not in registers."""
FEW_SUMS = 8
"""So few accumulators do not hide latency: a run's steps take turns between two of each."""
AHEAD = 8192
"""Bytes by which far weights are prefetched."""
PARAMETERS = (
    "ptr table, i64 table_step, i64 from, i64 tap_step, i64 taps, i64 depth, ptr w, ptr ahead, "
    "ptr start, ptr sums"
)
SCALES = "i64 offsets_step, ptr offsets, ptr x_scales, ptr w_scale, i64 first_group, i64 all_groups"


@cache
def tile(
    isa: Isa,
    rows: int,
    vectors: int,
    bits: int = 8,
    groups: Groups | None = None,
    unsigned: bool = False,
    far: bool = False,
) -> Function:
    """Return the microkernel of `rows` rows times `vectors` vectors; a tap has a step at least.

    A tap has its own pointers in the table, `table_step` after those of the one before, or the same
    ones and numbers that are `tap_step` further on.
    """
    fields = Fields(isa, bits, unsigned)
    f = Function(
        isa,
        f"fewbit_tile_{fields.name}{groups.name if groups else ''}{'_far' if far else ''}"
        f"_{rows}x{vectors}",
        f"{PARAMETERS}, {SCALES}" if groups else PARAMETERS,
        apart=True,
    )
    table, table_step, first, tap_step, taps, depth, w, ahead, start, sums, *scales = f.parameters
    width, step, unit = vectors * isa.lanes, isa.step, fields.unit
    kind = f"<{isa.lanes} x {'float' if groups else 'i32'}>"
    starts = [f.load(kind, start, i) for i in range(rows * vectors)]
    if groups:
        for i, total in enumerate(starts):
            f.store(total, sums, i)
    kept = [] if groups else starts

    def take(loop: Loop, pointers: list[Value], last: Value, *, whole: bool) -> None:
        """Take a run of steps, up to the `last`, which a `whole` run does not go beyond."""
        run_w, line, *totals = loop.carried
        if asks_ahead:
            f.prefetch(line)
            line = f.at(line, LINE, "i8")
        if far:
            for i in range(fields.run_vectors * vectors * isa.vector_bits // (8 * LINE) or 1):
                f.prefetch(f.at(run_w, AHEAD + i * LINE, "i8"))
        chains = [grid(totals, vectors)]
        if fields.run >= 4 and rows * vectors <= FEW_SUMS:
            chains.append([[f.zero(t.type) for t in row] for row in chains[0]])
        stored = [weights(f, run_w, i) for i in range(fields.run_vectors * vectors)]
        for s in range(fields.run):
            at = loop.index + s * step if s else loop.index
            at = at if whole else f.smaller(at, last)
            taken = [fields.take(f, stored[v::vectors], s) for v in range(vectors)]
            chains.append(dot(f, pointers, taken, at, chains.pop(0), unsigned))
        done = chains[0] if len(chains) == 1 else _add_sums(*chains)
        following = f.at(run_w, width * step * fields.run_vectors, "i8")
        loop.carry(following, line, *(sum_ for row in done for sum_ in row))

    asks_ahead = rows > 1 and vectors > isa.tile_vectors // 2  # else it takes more than it gives
    asks_ahead = asks_ahead and bits == 8
    with f.loop(0, taps, carried=[w, ahead, *kept]) as outer:
        tap, carried = outer.index, outer.carried
        pointers = [f.load("ptr", f.at(table, tap * table_step, "ptr"), r) for r in range(rows)]
        if groups and groups.shifted:
            carried += [f.zero(Vector(isa.lanes, I32))] * (rows * vectors)
        elif groups:
            carried += _offsets(f, scales[1], tap * scales[0], rows, vectors)
        begin = first + tap * tap_step
        end = begin + depth
        last = end - step
        if bits == 8:
            with f.loop(begin, end, step, carried=carried, hot=True) as inner:
                take(inner, pointers, last, whole=step == 1)
        else:
            complete = begin + depth // unit * unit
            with f.loop(begin, complete, unit, carried=carried) as runs:
                take(runs, pointers, last, whole=True)
            with f.loop(complete, end, unit, carried=runs.results) as inner:
                take(inner, pointers, last, whole=False)
        if groups:
            offsets_step, offsets, x_scales, w_scale, before, count = scales
            row_sums = f.at(offsets, tap * offsets_step, "i32")
            group = groups.locate(f, w_scale, before + tap, count, f.integer(width), depth)
            totals = grid(inner.results[2:], vectors)
            row_scales = f.at(x_scales, tap * offsets_step) if groups.blocks else x_scales
            _add_group(f, groups, totals, row_sums, row_scales, group, sums)
        outer.carry(*(inner.results[:2] if groups else inner.results))
    for i, total in enumerate(outer.results[2:]):
        f.store(total, sums, i)
    return f


def _add_sums(a: Sums, b: Sums) -> Sums:
    return [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]


def _offsets(f: Function, offsets: Value, at: Value, rows: int, vectors: int) -> list[Value]:
    """Return what the accumulators of a group start from."""
    here = f.at(offsets, at, "i32")
    each = [f.broadcast(f.load("i32", here, r)) for r in range(rows)]
    return [offset for offset in each for _ in range(vectors)]


def _add_group(
    f: Function,
    groups: Groups,
    totals: Sums,
    row_sums: Value,
    x_scales: Value,
    group: list[Value],
    sums: Value,
) -> None:
    """Add total · x_scale · w_scale to the sums, each operation rounded on its own.

    With offsets, row sum · x_scale · offset is added to that before. Row sums are negated, and so
    they are subtracted.
    """
    vectors = len(totals[0])
    w_scales = [groups.load(f, group, v) for v in range(vectors)]
    offsets = [groups.load(f, group, vectors + v) for v in range(vectors) if groups.shifted]
    for r, row in enumerate(totals):
        one = f.load("float", x_scales, r)
        x_scale = f.broadcast(one)
        for v, total in enumerate(row):
            term = f.convert("sitofp", total, "float") * x_scale * w_scales[v]
            if offsets:
                row_sum = f.convert("sitofp", f.load("i32", row_sums, r), "float") * one
                term = term - f.broadcast(row_sum) * offsets[v]
            place = r * vectors + v
            f.store(f.load(f.vector, sums, place) + term, sums, place)
