"""Nests to try things on."""

from __future__ import annotations

from fewbit.cost.loops import Access, Index, Loop, LoopNest

BODY = ("arith.mulf", "arith.addf", "linalg.yield")


def matmul(m: int, n: int, k: int, bits: int = 32) -> LoopNest:
    loops = (Loop(m, "parallel"), Loop(n, "parallel"), Loop(k, "reduction"))
    i, j, s = (Index(tuple(int(a == b) for b in range(3))) for a in range(3))
    return LoopNest(
        "linalg.matmul",
        loops,
        (
            Access("input", "f32", 32, (m, k), (i, s)),
            Access("input", f"i{bits}", bits, (k, n), (s, j)),
            Access("output", "f32", 32, (m, n), (i, j)),
        ),
        BODY,
        1,
    )


def convolution(out: int, channels: int, stride: int, dilation: int) -> LoopNest:
    """Return a one-dimensional convolution with a window of 3."""
    loops = (Loop(out, "parallel"), Loop(channels, "parallel"), Loop(3, "reduction"))
    reach = stride * (out - 1) + dilation * 2 + 1
    image = Access("input", "f32", 32, (reach,), (Index((stride, 0, dilation)),))
    weight = Access("input", "f32", 32, (3, channels), (Index((0, 0, 1)), Index((0, 1, 0))))
    written = Access("output", "f32", 32, (out, channels), (Index((1, 0, 0)), Index((0, 1, 0))))
    return LoopNest("conv", loops, (image, weight, written), BODY, 1)
