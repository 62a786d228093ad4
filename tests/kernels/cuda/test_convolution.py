"""Texts of convolutions, and their sizes beside PyTorch's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.kernels.cuda.arch import TURING
from fewbit.kernels.cuda.convolution import Convolution

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    kh, kw = draw(pairs)
    dilation, groups = draw(pairs), draw(st.integers(1, 3))
    low = [d * (k - 1) + 1 for d, k in zip(dilation, (kh, kw), strict=True)]
    h, w = (draw(st.integers(size, size + 6)) for size in low)
    c, f = (groups * draw(st.integers(1, 4)) for _ in range(2))
    padding = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    return Convolution(
        draw(st.integers(1, 3)), h, w, c, f, kh, kw, draw(pairs), padding, dilation, groups
    )


@given(convolutions())
def test_a_text_says_all_of_a_convolution(problem: Convolution) -> None:
    assert Convolution.parse(str(problem)) == problem


@given(convolutions(), st.sampled_from(["nhwc", "nchw"]))
def test_sizes_are_those_of_pytorch(problem: Convolution, layout: str) -> None:
    buffers = problem.of("f32", layout).buffers()
    x, w = (torch.zeros(buffers[name].shape) for name in "xw")
    if layout == "nhwc":
        x, w = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
    y = torch.nn.functional.conv2d(
        x, w, None, problem.stride, problem.padding, problem.dilation, problem.groups
    )
    expected = y.permute(0, 2, 3, 1) if layout == "nhwc" else y
    assert buffers["y"].shape == tuple(expected.shape)


def test_padding_is_half_of_the_filter_unless_given() -> None:
    problem = Convolution.parse("n1,9x9,3,4,k5,d2")
    assert problem.padding == (4, 4)
    assert problem.out_height == 9
    assert Convolution.parse("n1,9x9,3,4,k5,p0x1").padding == (0, 1)


def test_integers_give_sums_and_bytes_count() -> None:
    problem = Convolution.parse("n1,4x4,16,8,k1").of("i8", "nhwc")
    assert problem.buffers()["y"].dtype == "i32"
    assert problem.bytes == 16 * 16 + 8 * 16 + 16 * 8 * 4
    assert problem.operations == 2 * 16 * 16 * 8


@pytest.mark.parametrize("text", ["", "32,56x56,64,64,k3", "n1,4x4,4,4", "n1,4x4,4,4,k3,q2"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no shape"):
        Convolution.parse(text)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ShapeError, match="groups"):
        Convolution.parse("n1,4x4,3,4,k1,g2")
    with pytest.raises(ShapeError, match="does not fit"):
        Convolution.parse("n1,2x2,3,4,k5,p0")
    with pytest.raises(UsageError, match="f64"):
        Convolution.parse("n1,4x4,3,4,k1").of("f64", "nhwc")
    with pytest.raises(UsageError, match="layout"):
        Convolution.parse("n1,4x4,3,4,k1").of("f16", "chwn")
    with pytest.raises(UnsupportedError, match="bf16"):
        Convolution.parse("n1,4x4,3,4,k1").of("bf16", "nhwc").check(TURING)
