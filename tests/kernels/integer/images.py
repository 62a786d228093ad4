"""Convolutions of bytes on the cases of the float kernels: exact, or the bits that numpy gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fewbit.kernels import BitConv2d, IntegerConv2d, IntegerDepthwise, Isa
from tests.kernels.convolution import Case, windows
from tests.kernels.integer.epilogue import Epilogue, Outputs, Wanted
from tests.kernels.machine import address, guarded, integer_call, on_threads


def check(
    isa: Isa,
    case: Case,
    want: Wanted,
    kind: type[IntegerConv2d] | type[IntegerDepthwise],
    seed: int,
    bits: int = 8,
) -> None:
    kernel: IntegerConv2d | IntegerDepthwise = IntegerDepthwise(isa, want.output, bits)
    if kind is IntegerConv2d:
        kernel = IntegerConv2d(isa, want.output, bits, want.unsigned)
    check_pair(kernel, case, want, seed, 8, bits)


def check_pair(
    kernel: IntegerConv2d | IntegerDepthwise | BitConv2d,
    case: Case,
    want: Wanted,
    seed: int,
    x_bits: float,
    w_bits: float,
) -> None:
    """One group's channels follow another's in x and y; each group is a call."""
    rng = np.random.default_rng(seed)
    want = replace(want, bias=case.bias, add=case.add, clamped=case.clamped)
    depthwise, g = isinstance(kernel, IntegerDepthwise), case.groups
    oc = case.c if depthwise else case.oc
    (oh, ow), c, depth = case.out, case.c, 1 if depthwise else case.c
    shape = (case.batch, oh, ow, g * oc + case.gap)
    x = want.integers(rng, (case.batch, case.h, case.w, g * c + case.gap), x_bits)
    weight = want.weights(rng, (g * oc, depth, case.kh, case.kw), w_bits)
    epilogue = Epilogue(want, rng, shape)
    sizes = np.array(
        [case.batch, case.h, case.w, c, g * c + case.gap, oh, ow, oc, shape[-1], case.kh, case.kw,
         *case.stride, *case.pad[:2], *case.dilation], np.int64
    )  # fmt: skip
    call = integer_call(kernel)
    results = {threads: Outputs(want, shape) for threads in (1, 2, 3)}
    for i in range(g):
        channels = slice(i * oc, (i + 1) * oc)
        packed = guarded(kernel.pack(weight[channels]))
        for threads, y in results.items():
            given = [
                address(x[..., i * c :]),
                address(packed),
                *epilogue.scales(i * oc),
                *y.arguments(epilogue, i * oc),
                address(sizes),
                *epilogue.bounds,
            ]
            on_threads(threads, lambda t, ts, given=given: call(*given, t, ts))
        seen = windows(case, x[..., i * c : (i + 1) * c].astype(np.float64))
        rule = "bhwcij,cij->bhwc" if depthwise else "bhwcij,ocij->bhwo"
        used = (weight[channels, 0] if depthwise else weight[channels]).astype(np.float64)
        expected = epilogue.of(np.einsum(rule, seen, used, optimize=True), i * oc)
        for y in results.values():
            y.check(expected, channels)
    for y in results.values():
        y.check_untouched(slice(g * oc, None))
