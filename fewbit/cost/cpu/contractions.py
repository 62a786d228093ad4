"""The work of matmuls and convolutions, of floats and of integers of 1 to 8 bits.

A kernel goes over rows in blocks. For each block it makes a table of pointers (and, of integers,
the sum of each row), and sweeps over the panels: tile by tile, each with its epilogue.
Memory is read at four places: the weights, once for a block; the panel, by each tile after the
first; the rows, by each panel after the first; and the input itself. What is near enough costs
nothing beyond the tile's own loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.tiles import Part, blocks, float_step, integer_step, part, tiles
from fewbit.cost.cpu.work import Work, counts
from fewbit.kernels import Conv2d, IntegerConv2d, IntegerMatmul, Isa, Matmul
from fewbit.kernels.conv2d import Blocks as FloatBlocks
from fewbit.kernels.cuts import Known, Number
from fewbit.kernels.integer.conv2d import Blocks
from fewbit.kernels.integer.few_bits import ROOM, few_rows, few_tiles
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.matmul import rows_of_groups
from fewbit.kernels.integer.output import Plain, plain
from fewbit.kernels.integer.pack import packed_bytes
from fewbit.kernels.integer.strip import Strip, is_dense, takes_strips
from fewbit.kernels.integer.tile import FEW_SUMS, TALLEST
from fewbit.kernels.matmul import depth_of_block
from fewbit.kernels.pack import packed_size
from fewbit.kernels.sweep import BLOCK_ROWS

TILE_ROWS = 6
"""The rows of a tile, about: each reads its panel anew."""
OUTPUT_BYTES: dict[Plain, int] = {"i32": 4, "f32": 4, "i8": 1, "i32_i8": 5, "steps": 1}
FINISHED_LIKE: dict[Plain, Plain] = {
    "i32": "i32",
    "f32": "f32",
    "i8": "i8",
    "i32_i8": "i8",
    "steps": "f32",
}
"""Outputs whose epilogue takes as long: quantizing by a step is like giving floats."""


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@counts(Matmul)
def float_matmul(call: KernelCall, work: Work) -> None:
    s, isa = cast(MatrixSizes, call.sizes), call.kernel.isa
    own = part(s.m, s.n, s.k, call.threads, isa)
    weights = 4 * packed_size(s.k, s.n, isa)
    own_bytes = weights + 4 * s.m * (s.k + s.n)
    depth = int(depth_of_block(Known(isa), Number(s.m), Number(s.k)))
    depth_blocks = _ceil(s.k, depth)
    work.add("f32.calls", 1)
    for rows, times in blocks(own.rows, BLOCK_ROWS):
        work.add("f32.rows", times * depth_blocks * rows)
        for deep, of_them in blocks(s.k, depth):
            _float_sweep(work, isa, own, rows, 1, deep, times * of_them)
    Traffic("f32", weights, 4 * s.k, 4 * s.n, own_bytes, call.footprint).add(
        work, isa, own, s.n, BLOCK_ROWS
    )


@counts(Conv2d)
def float_conv2d(call: KernelCall, work: Work) -> None:
    s, isa = cast(ImageSizes, call.sizes), call.kernel.isa
    own = part(s.rows, s.oc, s.depth, call.threads, isa)
    cut = FloatBlocks.of(Known(isa), s.given())
    taps, c, fitting = int(cut.taps), int(cut.c), int(cut.rows)
    tap_step, depth = int(cut.tap_step), int(cut.depth_step)
    weights = 4 * packed_size(s.kh * s.kw * s.c, s.oc, isa)
    own_bytes = weights + 4 * (s.pixels * s.c + s.rows * s.oc)
    work.add("f32.calls", 1)
    for rows, times in blocks(own.rows, fitting):
        work.add("f32.located", times * rows)
        for deep, deep_times in blocks(c, depth):
            for tap_count, tap_times in blocks(taps, tap_step):
                here = times * deep_times * tap_times
                work.add("f32.table", here * tap_count * _ceil(rows, 8))
                _float_sweep(work, isa, own, rows, tap_count, deep, here)
    if int(cut.by_runs):
        work.add("f32.edges", _edge_rows(s) * own.rows / max(s.rows, 1) * s.kh)
    seen = 4 * s.c * s.pixels / max(s.rows, 1)
    Traffic("f32", weights, seen, 4 * s.oc, own_bytes, call.footprint).add(
        work, isa, own, s.oc, fitting
    )


def _edge_rows(s: ImageSizes) -> float:
    """Return how many output pixels have kernel rows across the left or right edge."""
    reach = (s.kw - 1) * s.dilation[1] + 1
    inner = [ox for ox in range(s.out[1]) if 0 <= ox * s.stride[1] - s.padding[1] <= s.w - reach]
    return s.rows * (1 - len(inner) / max(s.out[1], 1))


def _float_sweep(
    work: Work, isa: Isa, own: Part, rows: int, taps: int, depth: int, times: int
) -> None:
    for vectors in set(own.panels):
        wide = times * own.panels.count(vectors)
        for height, count in tiles(rows, isa.tile_rows(vectors), isa):
            here = wide * count
            work.add("f32.steps", here * taps * depth * float_step(isa, height, vectors))
            work.add("f32.taps", here * taps)
            work.add("f32.tiles", here)
            work.add("f32.finish", here * height * vectors)


@counts(IntegerMatmul)
def integer_matmul(call: KernelCall, work: Work) -> None:
    s, kernel = cast(MatrixSizes, call.sizes), cast(IntegerMatmul, call.kernel)
    isa, fields = kernel.isa, Fields(kernel.isa, kernel.bits, kernel.unsigned)
    own = part(s.m, s.n, s.k, call.threads, isa)
    taps = s.groups if kernel.grouped else 1
    depth = max(s.k // taps, isa.step)
    weights = packed_bytes(taps, depth, s.n, isa, kernel.bits)
    weights += 4 * taps * s.n if kernel.grouped else 0
    out = OUTPUT_BYTES[plain(kernel.output)]
    own_bytes = weights + s.m * (s.k + s.n * out)
    most = kernel.block_rows
    if kernel.grouped:
        most = int(rows_of_groups(Known(isa), Number(taps), most))
    work.add("i8.calls", 1)
    for rows, times in blocks(own.rows, most):
        work.add("i8.rows", times * rows)
        if fields.bias:
            work.add("i8.offsets", times * rows * taps * _ceil(depth, isa.lanes * isa.step))
        _integer_sweep(work, kernel, own, rows, taps, depth, times)
    Traffic("i8", weights, s.k, out * s.n, own_bytes, call.footprint).add(work, isa, own, s.n, most)


@counts(IntegerConv2d)
def integer_conv2d(call: KernelCall, work: Work) -> None:
    s, kernel = cast(ImageSizes, call.sizes), cast(IntegerConv2d, call.kernel)
    isa, fields = kernel.isa, Fields(kernel.isa, kernel.bits, kernel.unsigned)
    own = part(s.rows, s.oc, s.depth, call.threads, isa)
    strips = takes_strips(s.kh, s.kw, s.c, isa)
    if strips:
        taps, c, whole = s.kh, s.kw * s.c, True
        tap_step, deepest, most = taps, max(c, 1), _strip_rows(s, isa, own.rows)
    else:
        cut = Blocks.of(Known(isa), s.given(), fields.unit, Number(0), Number(own.rows))
        taps, c, whole = int(cut.taps), s.c, bool(int(cut.whole))
        tap_step, deepest, most = int(cut.tap_step), int(cut.depth_step), int(cut.rows)
    weights = packed_bytes(taps, c, s.oc, isa, kernel.bits)
    out = OUTPUT_BYTES[plain(kernel.output)]
    own_bytes = weights + s.pixels * s.c + s.rows * s.oc * out
    repeated = 1 if whole else len(own.panels)
    work.add("i8.calls", 1)
    for rows, times in blocks(own.rows, most):
        if strips:
            _copy_strip(work, s, isa, rows, times)
        else:
            work.add("i8.located", times * rows)
        for deep, deep_times in blocks(c, deepest):
            for tap_count, tap_times in blocks(taps, tap_step):
                here = times * deep_times * tap_times
                if not strips:
                    work.add("i8.table", here * repeated * tap_count * _ceil(rows, 8))
                if fields.bias and not (strips and kernel.bits == 8):
                    summed = tap_count * _ceil(max(deep, isa.step), isa.lanes * isa.step)
                    work.add("i8.offsets", here * repeated * rows * summed)
                _integer_sweep(work, kernel, own, rows, tap_count, max(deep, isa.step), here)
    seen = s.c * s.pixels / max(s.rows, 1)
    Traffic("i8", weights, seen, out * s.oc, own_bytes, call.footprint).add(
        work, isa, own, s.oc, most
    )


def _strip_rows(s: ImageSizes, isa: Isa, own_rows: int) -> int:
    """Return the pixels of a thread's first block: a part of a line, or whole lines."""
    if own_rows == 0:
        return 1
    return int(Strip.at(Known(isa), s.given(), Number(0), Number(own_rows)).rows)


def _copy_strip(work: Work, s: ImageSizes, isa: Isa, rows: int, times: int) -> None:
    """Count the copy of a strip: whole lines where kernel rows are dense, else bytes."""
    across = min(rows, max(s.out[1], 1))
    lines = (_ceil(rows, across) - 1) * s.stride[0] + s.kh
    work.add("i8.pointers", times * _ceil(rows, 8))
    if int(is_dense(s.given())):
        line = ((across - 1) * s.stride[1] + s.kw) * s.c
        work.add("i8.lines", times * lines)
        work.add("i8.chunks", times * lines * _ceil(line, isa.vector_bits // 8))
    else:
        work.add("i8.bytes", times * lines * across * s.kw * s.c)


def field_operations(isa: Isa, bits: int) -> float:
    """Return how many operations unpack one vector of weights of a width."""
    if bits == 8:
        return 0.0
    planes = len(Fields(isa, bits).planes)
    one = 1 if "+gfni" in isa.features and isa.vector_bits == 512 else 2
    return planes * one + (planes - 1)


def _integer_sweep(
    work: Work,
    kernel: IntegerMatmul | IntegerConv2d,
    own: Part,
    rows: int,
    taps: int,
    depth: int,
    times: int,
) -> None:
    isa, bits = kernel.isa, kernel.bits
    grouped = isinstance(kernel, IntegerMatmul) and kernel.grouped
    fields, taken = Fields(isa, bits), field_operations(isa, bits)
    in_registers = (bits < 8 or grouped) and rows <= few_rows(isa) * few_tiles(isa, bits)
    whole_runs = taps * fields.runs(depth) * fields.run
    steps = whole_runs if in_registers else taps * _ceil(depth, isa.step)
    for vectors in set(own.panels):
        wide = times * own.panels.count(vectors)
        highest = few_rows(isa) if in_registers else min(TALLEST, isa.tile_rows(vectors))
        if bits < 8 and not in_registers:
            work.add("i8.apart", wide * whole_runs * vectors * max(1.0, taken))
            work.add("i8.apart_loads", wide * whole_runs * vectors * bits / 8)
            parts = _ceil(steps * vectors * isa.lanes * isa.step, ROOM)
            work.add("i8.parts", wide * max(1, parts))
        for height, count in tiles(rows, highest, isa):
            here = wide * count
            chains = 2 if in_registers and fields.run >= 4 and height * vectors <= FEW_SUMS else 1
            asks = not in_registers and height > 1 and vectors > isa.tile_vectors // 2
            cycles = integer_step(isa, height, vectors, taken * in_registers, chains, asks)
            work.add("i8.fields" if in_registers else "i8.steps", here * steps * cycles)
            work.add("i8.taps", here * taps)
            work.add("i8.tiles", here)
            work.add(f"i8.finish.{FINISHED_LIKE[plain(kernel.output)]}", here * height * vectors)
            if grouped:
                work.add("i8.groups", here * taps * height * vectors)


@dataclass(frozen=True)
class Traffic:
    """Bytes of a call: its weights, a row of its inputs and outputs, and all of them.

    Weights come from as far as the `footprint` says; inputs were written by the layer before.
    """

    kind: str
    weights: float
    row_in: float
    row_out: float
    own: float
    footprint: int

    def add(self, work: Work, isa: Isa, own: Part, n: int, block: int) -> None:
        """Add the streams of one thread, in blocks of at most so many rows."""
        if not own.rows or not own.panels:
            return
        share = min(1.0, own.vectors * isa.lanes / max(n, 1))
        weights, x = self.weights * share, own.rows * self.row_in
        rows = min(own.rows, block)
        times = -(-own.rows // block)
        again = times * (-(-rows // TILE_ROWS) - 1)
        near = weights / len(own.panels) + rows * self.row_in
        work.stream(f"{self.kind}.weights", weights, max(self.own, self.footprint))
        work.stream(f"{self.kind}.weights", weights * (times - 1), weights + rows * self.row_in)
        work.stream(f"{self.kind}.panel", weights * again, near)
        work.stream(f"{self.kind}.x", x, self.own)
        work.stream(f"{self.kind}.x", x * (len(own.panels) - 1), near)
        work.stream(f"{self.kind}.y", own.rows * self.row_out * share, self.own)
