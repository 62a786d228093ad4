"""Filters of depthwise and separable convolutions, in the order in which threads read them."""

from __future__ import annotations

import numpy as np

from fewbit.kernels.cuda import depthwise
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.separable import SEPARABLE, Separable, pack_pointwise, shared_bytes


def test_depthwise_filters_are_wide_and_channels_last() -> None:
    problem = Convolution.parse("n1,5x5,6,6,k3,g6")
    w = np.arange(6 * 9, dtype=np.float16).reshape(6, 3, 3, 1)
    packed = depthwise.pack(problem, w)
    assert packed.dtype == np.float32
    assert packed[1, 2, 4] == w[4, 1, 2, 0]
    first = problem.of("i8", "nchw")
    packed = depthwise.pack(first, w.astype(np.int8).reshape(6, 1, 3, 3))
    assert packed.dtype == np.int32
    assert packed.shape == (6, 1, 3, 3)


def test_pointwise_filters_lie_as_lanes_want_them() -> None:
    problem = Separable(Convolution.parse("n1,5x5,32,32,k3,g32"), 24)
    w = np.random.default_rng(0).integers(-9, 9, (24, 32)).astype(np.int16)
    packed = pack_pointwise(problem, w)
    assert packed.shape == problem.buffers()["p"].shape == (2, 3, 32, 4)
    for step, block, lane, value in np.ndindex(packed.shape):
        k = step * 16 + lane % 4 * 2 + value % 2 + value // 2 * 8
        at = lane ^ 2 if lane >= 16 else lane
        assert packed[step, block, at, value] == w[block * 8 + lane // 4, k]


def test_settings_of_separable_convolutions_fit() -> None:
    problem = Separable(Convolution.parse("n32,14x14,576,576,k3,g576"), 96)
    configs = SEPARABLE.configs(problem, HOPPER)
    assert configs
    assert all(HOPPER.fits(shared_bytes(problem, config)) for config in configs)
    assert all(config["bw"] % config.get("tw", 1) == 0 for config in configs)
    assert [config for config in configs if not config["stages"]]
