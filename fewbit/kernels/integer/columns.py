"""Depthwise 3x3 kernels by dot products: three rows of the image are one step.

For 64 channels at a column of the image, the bytes of three rows (and a zero) are interleaved:
four vectors, in which each lane holds what a channel sees in that column. Neighbouring pixels share
it. It is the unsigned side of the product, as x + 128, so sums start from -128 times the sum of
their weights. Weights are stored tap by tap; their columns are made when a kernel begins, in the
same way, which takes about as long as a few pixels.

What is outside the image is read from zeros. All this is for processors with `vnni` and vectors of
64 bytes.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.cuts import Arithmetic, T
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.dot import BIAS, multiply
from fewbit.kernels.integer.output import SCALED, Output, advance, finish, pointers
from fewbit.kernels.sweep import row_of
from fewbit.toolchain.isa import VNNI, Isa

WIDTH = 64
"""Channels that are taken together."""
SIDE = 3
STRIDES = (1, 2)
AT_ONCE = 3
"""Pixels that share columns: with more, their sums are not in registers."""
_VECTORS = 4
CHUNK = SIDE * WIDTH * 4 + WIDTH * 4
"""Bytes of columns for 64 channels: three of them in steps of four, and where sums start."""


def multiplies_columns(isa: Isa) -> bool:
    """Return whether a processor has what this tile is made of."""
    return isa.dot == VNNI and isa.lanes * isa.step == WIDTH


def columns_fit(f: Function, s: Sizes) -> Value:
    """Return whether a convolution is for this tile."""
    return columns_suit(f, s) & f.constant("i1", multiplies_columns(f.isa))


def columns_suit(f: Arithmetic[T], s: Sizes[T]) -> T:
    """Return whether sizes are for this tile: the last 64 channels must not be mostly missing."""
    kernel = s.kh.equals(SIDE) & s.kw.equals(SIDE) & s.dilation_w.equals(1)
    taken = f.ceiling(s.c, WIDTH) * WIDTH
    return kernel & (s.stride_w <= max(STRIDES)) & (taken * 7 <= s.c * 10)


@cache
def make_columns(isa: Isa) -> Function:
    """The weights of `c` channels for this tile; the nine taps are `step` bytes apart."""
    f = Function(isa, "fewbit_make_columns_i8", "ptr w, i64 step, i64 c, ptr to")
    w, step, c, to = f.parameters
    ones = f.broadcast(f.constant("i8", BIAS), WIDTH)

    def make(channel: Value, mask: Value | None) -> None:
        chunk = f.at(to, channel * (CHUNK // WIDTH), "i8")
        starts = [f.zero(f"<{isa.lanes} x i32>")] * _VECTORS
        for kx in range(SIDE):
            places = [f.at(w, step * (ky * SIDE + kx) + channel, "i8") for ky in range(SIDE)]
            vectors = _interleave(f, [_seen(f, place, mask) for place in places])
            for v, weights in enumerate(vectors):
                f.store(weights, chunk, kx * _VECTORS + v)
                starts[v] = multiply(f, ones, weights, starts[v], unsigned=True)
        for v, total in enumerate(starts):
            f.store(f.zero(total.type) - total, f.at(chunk, SIDE * WIDTH * 4, "i8"), v)

    whole = c // WIDTH * WIDTH
    with f.loop(0, whole, WIDTH) as loop:
        make(loop.index, None)
    with f.when(whole < c):
        make(whole, _first(f, c - whole))
    return f


def _first(f: Function, count: Value) -> Value:
    """The mask of the first bytes, of up to 64."""
    return f.bits(f.integer(-1).shift_right(f.integer(WIDTH) - count), f"<{WIDTH} x i1>")


def _seen(f: Function, place: Value, mask: Value | None) -> Value:
    return f.load(f"<{WIDTH} x i8>", place) if mask is None else f.load_part(place, mask, "i8")


@cache
def columns_tile(isa: Isa, stride: int, pixels: int) -> Function:
    """Sums of neighbouring pixels, for 64 channels, or for `depth` of them if that is less.

    The image is `w` wide; the first column that is seen is `left` in it. Rows outside are zeros,
    with a step of 0.
    """
    f = Function(
        isa,
        f"fewbit_columns_i8_{stride}_{pixels}",
        "ptr row0, ptr row1, ptr row2, i64 step0, i64 step1, i64 step2, i64 left, i64 w, "
        "ptr weights, i64 depth, ptr sums",
    )
    rows, steps = f.parameters[:SIDE], f.parameters[SIDE : 2 * SIDE]
    left, w, packed, depth, to = f.parameters[2 * SIDE :]
    kind, total = f"<{WIDTH} x i8>", f"<{isa.lanes} x i32>"
    unsigned = f.broadcast(f.constant("i8", BIAS), WIDTH)
    starts = f.at(packed, SIDE * WIDTH * 4, "i8")
    mask = _first(f, depth)

    def sum_up(seen: Value | None) -> None:
        sums = [[f.load(total, starts, v) for v in range(_VECTORS)] for _ in range(pixels)]
        for column in range((pixels - 1) * stride + SIDE):
            exists = (left + column).inside(w)
            bytes_: list[Value] = []
            for row, step in zip(rows, steps, strict=True):
                place = f.select(exists, f.at(row, step * column, "i8"), f.zeros())
                bytes_.append(_seen(f, place, seen) ^ unsigned)
            interleaved = _interleave(f, bytes_)
            for pixel in range(pixels):
                kx = column - pixel * stride
                if 0 <= kx < SIDE:
                    weights = [f.load(kind, packed, kx * _VECTORS + v) for v in range(_VECTORS)]
                    sums[pixel] = [
                        f.processor_call("x86.avx512.vpdpbusd.512", total, t, x, k)
                        for t, x, k in zip(sums[pixel], interleaved, weights, strict=True)
                    ]
        for i, value in enumerate(value for row in sums for value in row):
            f.store(value, to, i)

    with f.when(depth >= WIDTH):
        sum_up(None)
    with f.when(depth < WIDTH):
        sum_up(mask)
    return f


@cache
def columns(isa: Isa, output: Output) -> Function:
    """All channels of neighbouring pixels; `x` is the corner of what the first of them sees."""
    f = Function(
        isa,
        f"fewbit_columns_i8_{output}",
        "ptr sizes, ptr x, i64 top, i64 left, ptr w_packed, i64 pixels, ptr x_scale, "
        f"ptr w_scale, ptr bias, ptr add, {pointers(output)}, i64 y_step, i64 c, "
        "float lo, float hi",
    )
    sizes, x, top, left, w, pixels, x_scale, w_scale, bias, add, *others = f.parameters
    *outputs, y_step, c, lo, hi = others
    s = Sizes.load(f, sizes)
    sums = f.array("i32", AT_ONCE * WIDTH)
    scales = f.array("float", AT_ONCE)
    if output in SCALED:
        for i in range(AT_ONCE):
            f.store(f.load("float", x_scale), scales, i)
    exist = [(top + s.dilation_h * r).inside(s.h) for r in range(SIDE)]
    rows = [f.at(x, s.dilation_h * s.w * s.x_stride * r, "i8") for r in range(SIDE)]
    with f.loop(0, c, WIDTH) as loop:
        channel, depth = loop.index, c - loop.index
        seen = zip(exist, rows, strict=True)
        f.switch(
            s.stride_w * 16 + pixels,
            [
                (stride * 16 + n, columns_tile(isa, stride, n))
                for stride in STRIDES
                for n in range(1, AT_ONCE + 1)
            ],
            *(f.select(exists, f.at(row, channel, "i8"), f.zeros()) for exists, row in seen),
            *(f.select(exists, s.x_stride, 0) for exists in exist),
            left,
            s.w,
            f.at(w, channel // WIDTH * CHUNK, "i8"),
            depth,
            sums,
        )
        f.call(
            finish(isa, output, offset="none"),
            sums,
            pixels,
            WIDTH,
            f.zeros(),
            scales,
            f.at(w_scale, channel),
            row_of(f, bias, channel),
            row_of(f, add, channel),
            *advance(f, output, outputs, channel),
            y_step,
            f.smaller(depth, WIDTH),
            lo,
            hi,
        )
    return f


def _interleave(f: Function, rows: list[Value]) -> list[Value]:
    """Interleave vectors of 64 bytes: the first bytes of all and a zero, then the second bytes."""
    rows = [_dealt(f, row) for row in rows]
    zero = f.zero(rows[0].type)
    pairs = [_unpack(f, rows[0], rows[1], 1), _unpack(f, rows[2], zero, 1)]
    low, high = (_unpack(f, a, b, 2) for a, b in zip(*pairs, strict=True))
    return [*low, *high]


def _dealt(f: Function, row: Value) -> Value:
    """Groups of four bytes, dealt out to the quarters of a register, within which bytes stay."""
    words = f.bits(row, "<16 x i32>")
    dealt = f.shuffle(words, [4 * (i % 4) + i // 4 for i in range(16)])
    return f.bits(dealt, row.type)


def _unpack(f: Function, a: Value, b: Value, size: int) -> tuple[Value, Value]:
    """The lower halves of all quarters interleaved, and the upper halves, `size` bytes a time."""
    halves: list[Value] = []
    for half in (0, 8):
        order = [
            quarter + half + cell // 2 * size + i + cell % 2 * WIDTH
            for quarter in range(0, WIDTH, 16)
            for cell in range(16 // size)
            for i in range(size)
        ]
        halves.append(f.shuffle(a, order, b))
    return halves[0], halves[1]
