"""Convolutions to try, and what they should give: computed in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.kernels import Conv2d, Depthwise, Isa
from tests.kernels.machine import Floats, address, compiled, guarded, on_threads

INF = float("inf")


@dataclass(frozen=True)
class Case:
    batch: int
    h: int
    w: int
    c: int
    oc: int
    kh: int
    kw: int
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int
    bias: bool
    add: bool
    clamped: bool
    gap: int
    """Floats between pixels that belong to no channel."""

    @property
    def out(self) -> tuple[int, int]:
        top, left, bottom, right = self.pad
        return (
            (self.h + top + bottom - (self.kh - 1) * self.dilation[0] - 1) // self.stride[0] + 1,
            (self.w + left + right - (self.kw - 1) * self.dilation[1] - 1) // self.stride[1] + 1,
        )


@st.composite
def cases(draw: st.DrawFn, channels: st.SearchStrategy[int], depthwise: bool = False) -> Case:
    kh, kw = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pad = draw(st.tuples(*[st.integers(0, 4)] * 4))
    reach_h, reach_w = (kh - 1) * dilation[0] + 1, (kw - 1) * dilation[1] + 1
    h = draw(st.integers(max(1, reach_h - pad[0] - pad[2]), 14))
    w = draw(st.integers(max(1, reach_w - pad[1] - pad[3]), 20))
    return Case(
        draw(st.integers(1, 2)),
        max(h, reach_h - pad[0] - pad[2]),
        max(w, reach_w - pad[1] - pad[3]),
        draw(channels),
        draw(st.integers(1, 70)),
        kh,
        kw,
        draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        pad,
        dilation,
        1 if depthwise else draw(st.sampled_from([1, 1, 2, 3])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 3])),
    )


def windows(case: Case, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each output pixel sees of the padded image, as [batch, oh, ow, c, kh, kw]."""
    top, left, bottom, right = case.pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (oh, ow), (sh, sw), (dh, dw) = case.out, case.stride, case.dilation
    taps = [
        padded[
            :, i * dh : i * dh + (oh - 1) * sh + 1 : sh, j * dw : j * dw + (ow - 1) * sw + 1 : sw
        ]
        for i in range(case.kh)
        for j in range(case.kw)
    ]
    return np.stack(taps, -1).reshape(*taps[0].shape, case.kh, case.kw)


def check(isa: Isa, case: Case, kernel: type[Conv2d] | type[Depthwise], seed: int) -> None:
    """One group's channels follow another's in x and y; each group is a call."""
    rng = np.random.default_rng(seed)
    depthwise, g = kernel is Depthwise, case.groups
    oc = case.c if depthwise else case.oc
    (oh, ow), c, depth = case.out, case.c, 1 if depthwise else case.c
    x = guarded(rng.standard_normal((case.batch, case.h, case.w, g * c + case.gap), np.float32))
    weight = rng.standard_normal((g * oc, depth, case.kh, case.kw), np.float32)
    bias = guarded(rng.standard_normal(g * oc, np.float32)) if case.bias else None
    shape = (case.batch, oh, ow, g * oc + case.gap)
    add = rng.standard_normal(shape, np.float32) if case.add else None
    low, high = (-0.5, 2.0) if case.clamped else (-INF, INF)
    y_stride = g * oc + case.gap
    sizes = np.array(
        [case.batch, case.h, case.w, c, g * c + case.gap, oh, ow, oc, y_stride, case.kh, case.kw,
         *case.stride, *case.pad[:2], *case.dilation], np.int64
    )  # fmt: skip

    def run(threads: int) -> Floats:
        y = np.full(shape, np.nan, np.float32)
        for i in range(g):
            packed = guarded(kernel(isa).pack(weight[i * oc : (i + 1) * oc]))
            at = [
                address(x[..., i * c :]),
                address(packed),
                None if bias is None else address(bias[i * oc :]),
                None if add is None else address(add[..., i * oc :]),
                address(y[..., i * oc :]),
                address(sizes),
            ]
            on_threads(threads, lambda t, ts, at=at: compiled(isa)[kernel](*at, low, high, t, ts))
        return y

    got = run(1)
    assert np.isnan(got[..., g * oc :]).all(), "wrote beside the channels"
    for threads in (2, 3):
        assert got.tobytes() == run(threads).tobytes()

    for i in range(g):
        channels = slice(i * oc, (i + 1) * oc)
        seen = windows(case, x[..., i * c : (i + 1) * c].astype(np.float64))
        rule = "bhwcij,cij->bhwc" if depthwise else "bhwcij,ocij->bhwo"
        used = weight[channels, 0] if depthwise else weight[channels]
        expected = np.einsum(rule, seen, used.astype(np.float64))
        size = np.einsum(rule, np.abs(seen), np.abs(used.astype(np.float64)))
        for term in (
            None if bias is None else bias[channels],
            None if add is None else add[..., channels],
        ):
            if term is not None:
                expected, size = expected + term, size + np.abs(term)
        error = np.abs(got[..., channels] - np.clip(expected, low, high))
        bound = (2 * depth * case.kh * case.kw + 4) * 2.0**-24 * size
        assert (error <= bound + 1e-30).all()
