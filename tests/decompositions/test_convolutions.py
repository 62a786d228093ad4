"""Convolutions without an op of their own are layers, and compute what PyTorch does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import fewbit
from fewbit.decompositions.convolutions import convolution_decompositions
from fewbit.dialects.mico import BitConv2dOp
from fewbit.ir.layers import layers

aten = torch.ops.aten
TABLE = convolution_decompositions()
TRANSPOSED: dict[int, Any] = {
    1: (F.conv_transpose1d, aten.conv_transpose1d.default),
    2: (F.conv_transpose2d, aten.conv_transpose2d.input),
    3: (F.conv_transpose3d, aten.conv_transpose3d.input),
}


def whole_numbers(*shape: int) -> Tensor:
    """Floats whose sums are exact in any order."""
    return torch.randint(-4, 5, shape).double()


@st.composite
def transposed(draw: st.DrawFn) -> dict[str, Any]:
    rank, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))

    def each(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    strides = each(1, 4)
    dilations = [d if s == 1 else 1 for s, d in zip(strides, each(1, 3), strict=True)]
    more = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True)]
    return {
        "x": (2, groups * draw(st.integers(1, 2)), *each(2, 4)),
        "kernel": (draw(st.integers(1, 3)), *each(1, 5)),
        "options": (strides, each(0, 2), more, groups, dilations),
        "bias": draw(st.booleans()),
    }


@settings(max_examples=150)
@given(case=transposed())
def test_transposed_convolutions_are_pytorchs(case: dict[str, Any]) -> None:
    x = whole_numbers(*case["x"])
    weight = whole_numbers(x.shape[1], *case["kernel"])
    groups = case["options"][3]
    bias = whole_numbers(weight.shape[1] * groups) if case["bias"] else None
    function, op = TRANSPOSED[x.ndim - 2]
    try:
        expected = function(x, weight, bias, *case["options"])
    except RuntimeError:
        return  # PyTorch refuses an empty result.
    torch.testing.assert_close(
        TABLE[op](x, weight, bias, *case["options"]), expected, rtol=0, atol=0
    )


@settings(max_examples=80)
@given(
    kernel=st.lists(st.integers(1, 3), min_size=3, max_size=3),
    dilation=st.lists(st.integers(1, 2), min_size=3, max_size=3),
    padding=st.one_of(
        st.sampled_from(["same", "valid"]), st.lists(st.integers(0, 2), min_size=3, max_size=3)
    ),
    stride=st.lists(st.integers(1, 3), min_size=3, max_size=3),
    groups=st.integers(1, 3),
)
def test_convolutions_of_volumes_are_pytorchs(
    kernel: list[int], dilation: list[int], padding: Any, stride: list[int], groups: int
) -> None:
    stride = [1, 1, 1] if padding == "same" else stride
    x, weight = whole_numbers(2, 2 * groups, 5, 6, 7), whole_numbers(3 * groups, 2, *kernel)
    options = (stride, padding, dilation, groups)
    expected = F.conv3d(x, weight, None, *options)
    ours = TABLE[aten.conv3d.default](x, weight, None, *options)
    torch.testing.assert_close(ours, expected, rtol=0, atol=0)


MODELS: dict[str, tuple[nn.Module, Tensor]] = {
    "volume": (nn.Conv3d(4, 6, 3, stride=2, padding=1, groups=2), torch.randn(2, 4, 5, 8, 8)),
    "volume of one sample": (nn.Conv3d(3, 4, (2, 3, 1)), torch.randn(3, 4, 6, 6)),
    "transposed": (nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1), torch.randn(2, 4, 5, 5)),
    "transposed, in groups": (nn.ConvTranspose2d(4, 6, 2, 2, groups=2), torch.randn(1, 4, 5, 5)),
    "transposed, 1d": (nn.ConvTranspose1d(4, 3, 5, 3), torch.randn(2, 4, 5)),
    "transposed, 3d": (nn.ConvTranspose3d(2, 3, 2, 2), torch.randn(1, 2, 3, 3, 3)),
    "depthwise": (nn.Conv2d(4, 8, 3, groups=4), torch.randn(1, 4, 6, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_convolution_is_a_layer(name: str) -> None:
    model, x = MODELS[name]
    program = fewbit.import_model(model.eval(), (x,))
    assert list(layers(program.module)) == ["weight"]
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(program.run(x.numpy())[0], expected, rtol=1e-4, atol=1e-5)
    quantized = fewbit.quantize(program, "w8a8", strict=True)
    result = quantized.run(x.numpy())[0]
    assert np.square(result - expected).mean() < 1e-3 * np.square(expected).mean()
    compiled = fewbit.compile(quantized)(x.numpy())
    np.testing.assert_allclose(compiled, result, rtol=1e-4, atol=1e-5)


def test_integers_of_a_volume_are_those_of_an_image() -> None:
    """A window of depth 1 is a convolution of each plane."""
    volume, image = nn.Conv3d(4, 6, (1, 3, 3)), nn.Conv2d(4, 6, 3)
    image.weight = nn.Parameter(volume.weight.detach()[:, :, 0].clone())
    image.bias = volume.bias
    x = torch.randn(1, 4, 3, 8, 8)
    ours = fewbit.quantize(volume, "w4a8", example_inputs=(x,), strict=True)
    theirs = fewbit.quantize(image, "w4a8", example_inputs=(x[:, :, 0],), strict=True)
    for plane in range(3):
        expected = theirs.run(x[:, :, plane].numpy())[0]
        np.testing.assert_array_equal(ours.run(x.numpy())[0][:, :, plane], expected)


def test_integers_of_a_transposed_convolution_are_those_of_a_convolution() -> None:
    """It is one with a stride of 1, of the weight back to front."""
    layer = nn.ConvTranspose2d(4, 6, 3, bias=False)
    plain = nn.Conv2d(4, 6, 3, padding=2, bias=False)
    plain.weight = nn.Parameter(layer.weight.detach().transpose(0, 1).flip(2, 3).contiguous())
    x = torch.randn(2, 4, 5, 5)
    ours, theirs = (
        fewbit.quantize(m, "w4a8", example_inputs=(x,), strict=True) for m in (layer, plain)
    )
    np.testing.assert_array_equal(ours.run(x.numpy())[0], theirs.run(x.numpy())[0])


def test_a_bilinear_layer_has_a_layer_in_it() -> None:
    class Bilinear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair = nn.Bilinear(5, 4, 3)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.pair(x, y)

    model, x, y = Bilinear(), torch.randn(2, 5), torch.randn(2, 4)
    program = fewbit.import_model(model, (x, y))
    assert list(layers(program.module)) == ["pair"]
    expected = model(x, y).detach().numpy()
    np.testing.assert_allclose(program.run(x.numpy(), y.numpy())[0], expected, rtol=1e-4, atol=1e-5)


def test_no_convolution_of_more_than_two_dimensions_is_left() -> None:
    model, x = MODELS["volume"]
    program = fewbit.import_model(model, (x,))
    assert [type(op) for ops in layers(program.module).values() for op in ops] == [BitConv2dOp]
    assert "linalg.conv" not in program.text()
