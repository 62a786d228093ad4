"""The work of depthwise convolutions: neighbouring pixels of a line, in groups.

Pixels inside a line share vectors of weights, up to eight of them; those at its ends are taken one
by one. Bytes in 3x3 kernels have columns instead, three pixels at a time (`integer/columns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from fewbit.cost.cpu.contractions import FINISHED_LIKE, OUTPUT_BYTES
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall
from fewbit.cost.cpu.work import Work, counts
from fewbit.kernels import Depthwise, IntegerDepthwise, Isa
from fewbit.kernels.cuts import Known
from fewbit.kernels.depthwise import MOST_PIXELS
from fewbit.kernels.integer.columns import (
    AT_ONCE,
    SIDE,
    WIDTH,
    columns_suit,
    multiplies_columns,
)
from fewbit.kernels.integer.output import plain


@counts(Depthwise)
def float_depthwise(call: KernelCall, work: Work) -> None:
    s = cast(ImageSizes, call.sizes)
    _taps(work, s, call, "dw32")
    _memory(work, s, call, 4, 4, "dw32")


@counts(IntegerDepthwise)
def integer_depthwise(call: KernelCall, work: Work) -> None:
    s, kernel = cast(ImageSizes, call.sizes), cast(IntegerDepthwise, call.kernel)
    if has_columns(s, kernel.isa):
        _columns(work, s, call, FINISHED_LIKE[plain(kernel.output)])
    else:
        _taps(work, s, call, "dw8", f".{FINISHED_LIKE[plain(kernel.output)]}")
    _memory(work, s, call, 1, OUTPUT_BYTES[plain(kernel.output)], "dw8")


def has_columns(s: ImageSizes, isa: Isa) -> bool:
    """Return whether a convolution has columns, as `columns_fit` decides."""
    return multiplies_columns(isa) and bool(int(columns_suit(Known(isa), s.given())))


def _columns(work: Work, s: ImageSizes, call: KernelCall, output: str) -> None:
    lines, chunks = _lines(s, call.threads), -(-s.c // WIDTH)
    vectors = -(-s.c // call.kernel.isa.lanes)
    work.add("dw8.calls", 1)
    for pixels, times in _split_evenly(s.out[1], AT_ONCE):
        here = lines * times
        work.add("dw8.together", here)
        work.add("dw8.chunks", here * chunks)
        work.add("dw8.columns", here * chunks * ((pixels - 1) * s.stride[1] + SIDE))
        work.add(f"dw8.finish_columns.{output}", here * pixels * vectors)


def _taps(work: Work, s: ImageSizes, call: KernelCall, kind: str, ending: str = "") -> None:
    isa = call.kernel.isa
    lines, kernel_rows = _lines(s, call.threads), _mean_kernel_rows(s)
    work.add(f"{kind}.calls", 1)
    for pixels, times, columns in _groups(s):
        vectors = max(1, isa.registers // 2 // pixels)
        whole, remainder = divmod(s.c, vectors * isa.lanes)
        here, taps = lines * times, kernel_rows * columns
        work.add(f"{kind}.together", here)
        for wide, count in ((vectors, whole), (1, -(-remainder // isa.lanes))):
            work.add(f"{kind}.taps", here * count * taps)
            work.add(f"{kind}.weights", here * count * taps * wide)
            work.add(f"{kind}.dots", here * count * taps * wide * pixels)
            work.add(f"{kind}.finish{ending}", here * count * wide * pixels)


def _lines(s: ImageSizes, threads: int) -> float:
    """Return the lines of output pixels of one thread."""
    return s.batch * s.out[0] * -(-s.rows // threads) / max(s.rows, 1)


def _mean_kernel_rows(s: ImageSizes) -> float:
    """Return how many kernel rows are inside the image, on average over lines."""
    return _mean_taps(s.out[0], s.stride[0], s.padding[0], s.h, s.kh, s.dilation[0])


def _mean_taps(out: int, stride: int, pad: int, size: int, taps: int, dilation: int) -> float:
    inside = sum(
        0 <= o * stride - pad + t * dilation < size for o in range(out) for t in range(taps)
    )
    return inside / max(out, 1)


def _groups(s: ImageSizes) -> Iterator[tuple[int, int, float]]:
    """Yield groups of pixels of a line: how many, how often, and kernel columns that they see."""
    reach = (s.kw - 1) * s.dilation[1]
    starts = [ox * s.stride[1] - s.padding[1] for ox in range(s.out[1])]
    inner = sum(left >= 0 and left + reach < s.w for left in starts)
    for pixels, times in _split_evenly(inner, MOST_PIXELS):
        yield pixels, times, s.kw
    for left in starts:
        if not (left >= 0 and left + reach < s.w):
            seen = sum(0 <= left + t * s.dilation[1] < s.w for t in range(s.kw))
            yield 1, 1, seen


def _split_evenly(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield group sizes as `neighbours` has them: the remainder is each time split evenly."""
    while count > 0:
        size = -(-count // -(-count // most))
        yield size, 1
        count -= size


def _memory(work: Work, s: ImageSizes, call: KernelCall, size: int, out: int, kind: str) -> None:
    share = -(-s.rows // call.threads) / max(s.rows, 1)
    read, written = size * s.pixels * s.c, out * s.rows * s.c
    footprint = read + written
    work.stream(f"{kind}.x", share * read, footprint)
    around = size * s.kh * s.w * s.c + out * s.out[1] * s.c
    work.stream(f"{kind}.x", share * read * max(0.0, s.kh / s.stride[0] - 1), around)
    work.stream(f"{kind}.y", share * written, footprint)
