"""Quantized torch layers against the integer layers of `fewbit.numerics`."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fewbit import numerics
from fewbit.base.typed_torch import from_numpy, manual_seed
from fewbit.errors import Error, ShapeError, UsageError
from fewbit.numerics import WIDTHS, Width
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.layers import (
    QuantConv1d,
    QuantConv2d,
    QuantEmbedding,
    QuantLayer,
    QuantLinear,
    float_layer,
    quantize_layer,
)

TEXTS = [
    "w8a8",
    "w2a2",
    "w8a6",
    "w6a8",
    "w3a8",
    "w4a4",
    "w1a1",
    "w1.58a8",
    "w1.58a1.58",
    "w4a8-tensor",
    "w4a8-mean",
    "w4a8-asym",
    "w5a7g5",
    "w4afp",
    "wfpa4",
]
every_scheme = pytest.mark.parametrize("text", TEXTS)


def normal(*shape: int) -> torch.Tensor:
    rng = np.random.default_rng(sum(shape))
    return from_numpy(rng.standard_normal(shape).astype(np.float32))


def weight_of(layer: QuantLayer) -> Any:
    w = layer.weight.detach().numpy()
    return w if layer.scheme.weight is None else layer.scheme.quantize_weight(w)


def bias_of(layer: Any) -> Any:
    return None if layer.bias is None else layer.bias.detach().numpy()


def close(found: torch.Tensor, expected: Any, bound: float = 1e-5) -> None:
    assert found.shape == expected.shape
    error = np.linalg.norm(found.detach().numpy() - expected) / np.linalg.norm(expected)
    assert error <= bound, error


def agrees(layer: QuantLayer, x: torch.Tensor, expected: Any) -> None:
    """Exact where both operands are integers, and close to it as it trains."""
    layer.exact = True
    found = layer(x)
    if layer.scheme.weight is not None and layer.scheme.act is not None:
        np.testing.assert_array_equal(found.numpy(), expected)
    close(found, expected)
    layer.exact = False
    close(layer(x), expected)


@every_scheme
@pytest.mark.parametrize("shape", [(25,), (3, 25), (2, 3, 25)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(text: str, shape: tuple[int, ...], bias: bool) -> None:
    manual_seed(0)
    layer = QuantLinear(25, 7, bias=bias, scheme=text)
    x = normal(*shape)
    expected = numerics.bitlinear(x.numpy(), weight_of(layer), bias_of(layer), layer.scheme.act)
    agrees(layer, x, expected)


CONVOLUTIONS = [
    {"kernel_size": 3},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (2, 1)},
    {"kernel_size": 3, "dilation": (2, 3), "padding": (1, 4)},
    {"kernel_size": 3, "groups": 5, "padding": 1},
    {"kernel_size": 3, "padding": "same"},
]


@every_scheme
@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
def test_conv2d(text: str, options: dict[str, Any]) -> None:
    manual_seed(0)
    if options.get("groups") and "g5" in text:
        text = text.replace("g5", "g3")
    layer = QuantConv2d(5, 10, **options, scheme=text)
    x = normal(3, 5, 9, 11)
    pad: Any = (1, 1) if isinstance(layer.padding, str) else layer.padding
    stride: Any = layer.stride
    dilation: Any = layer.dilation
    expected = numerics.bitconv2d(
        x.numpy(),
        weight_of(layer),
        bias_of(layer),
        layer.scheme.act,
        stride=stride,
        padding=((pad[0], pad[0]), (pad[1], pad[1])),
        dilation=dilation,
        groups=layer.groups,
    )
    agrees(layer, x, expected)
    if "mean" not in text:
        close(layer(x[0]), layer(x)[0].detach().numpy())


@every_scheme
def test_conv1d(text: str) -> None:
    manual_seed(0)
    layer = QuantConv1d(5, 6, 4, stride=2, padding=3, dilation=2, scheme=text)
    x = normal(2, 5, 17)
    expected = numerics.bitconv1d(
        x.numpy(),
        weight_of(layer),
        bias_of(layer),
        layer.scheme.act,
        stride=2,
        padding=(3, 3),
        dilation=2,
    )
    agrees(layer, x, expected)


def test_other_padding_comes_before_quantization() -> None:
    layer = QuantConv2d(2, 3, 3, padding=1, padding_mode="reflect", scheme="w4a2")
    x = normal(2, 2, 5, 5)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect")
    expected = numerics.bitconv2d(padded, weight_of(layer), bias_of(layer), 2)
    agrees(layer, x, expected)


@pytest.mark.parametrize("text", ["w8a8", "w4a4-asym", "w1a8", "w2a8", "w4a8-tensor", "w3a8g4"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_embedding(text: str, shape: tuple[int, ...]) -> None:
    manual_seed(0)
    layer = QuantEmbedding(11, 8, padding_idx=3, scheme=text)
    indices = torch.randint(0, 11, shape)
    expected = weight_of(layer).dequantize()[indices.numpy()]
    np.testing.assert_array_equal(layer(indices).detach().numpy(), expected)


@pytest.mark.parametrize("text", ["w2a8", "w2a8-tensor"])
def test_embedding_gradients_reach_the_rows_that_were_taken(text: str) -> None:
    layer = QuantEmbedding(5, 4, padding_idx=0, scheme=text)
    layer(torch.tensor([0, 2, 2, 4])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.sum(dim=1).numpy().tolist() == [0, 0, 8, 0, 4]


def test_embedding_with_a_norm_limit() -> None:
    for text in ("w8a8", "w8a8-tensor"):
        layer = QuantEmbedding(5, 4, max_norm=0.5, scheme=text)
        assert layer(torch.arange(5)).norm(dim=1).max() < 0.52
        assert layer.weight.square().sum(dim=1).sqrt().max() < 0.51


@pytest.mark.parametrize("text", ["w4a8-static", "w4a8-static-asym", "w2a2-static"])
def test_static_activations(text: str) -> None:
    manual_seed(0)
    zero = -3 if "asym" in text else None
    layer = QuantLinear(25, 7, scheme=text, act_scale=0.11, act_zero_point=zero)
    x = normal(3, 25)
    expected = numerics.bitlinear(
        x.numpy(), weight_of(layer), bias_of(layer), layer.scheme.act, 0.11, zero
    )
    agrees(layer, x, expected)
    conv = QuantConv2d(5, 4, 3, padding=1, scheme=text, act_scale=0.11, act_zero_point=zero)
    image = normal(2, 5, 6, 6)
    expected = numerics.bitconv2d(
        image.numpy(),
        weight_of(conv),
        bias_of(conv),
        conv.scheme.act,
        0.11,
        zero,
        padding=((1, 1), (1, 1)),
    )
    agrees(conv, image, expected)


def test_zero_points_of_symmetric_or_dynamic_layers_are_not_used() -> None:
    x = normal(3, 25)
    manual_seed(0)
    plain = QuantLinear(25, 7, scheme="w4a8")
    given = QuantLinear(25, 7, scheme="w4a8", act_scale=0.5, act_zero_point=3)
    given.load_state_dict(plain.state_dict())
    assert torch.equal(plain(x), given(x))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (functools.partial(QuantLinear, 6, 4), (3, 6)),
        (functools.partial(QuantConv1d, 6, 4, 3), (2, 6, 9)),
        (functools.partial(QuantConv2d, 6, 4, 3), (2, 6, 5, 5)),
    ],
)
def test_gradients_reach_everything(make: Any, shape: tuple[int, ...], width: Width) -> None:
    manual_seed(0)
    layer = make(scheme=LayerScheme(weight=width, act=width))
    x = normal(*shape).requires_grad_()
    layer(x).square().sum().backward()
    for tensor in (x, layer.weight, layer.bias):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().sum() > 0


@pytest.mark.parametrize("text", ["w4a4", "w1a1"])
def test_odd_sizes(text: str) -> None:
    manual_seed(0)
    layers = [QuantLinear(a, b, scheme=text) for a, b in ((255, 61), (61, 53), (53, 31))]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    for layer in layers:
        layer.exact = True
    x = normal(4, 255)
    y: Any = x.numpy()
    for i, layer in enumerate(layers):
        y = numerics.bitlinear(y, weight_of(layer), bias_of(layer), layer.scheme.act)
        y = np.maximum(y, 0) if i < 2 else y
    np.testing.assert_array_equal(model(x).numpy(), y)


def test_all_zero_tensors() -> None:
    for width in WIDTHS:
        layer = QuantLinear(8, 3, scheme=LayerScheme(weight=width, act=width))
        nn.init.zeros_(layer.weight)
        x = torch.zeros(2, 8)
        expected = numerics.bitlinear(x.numpy(), weight_of(layer), bias_of(layer), width)
        agrees(layer, x, expected)


def test_empty_batches() -> None:
    x = torch.zeros(0, 8, requires_grad=True)
    for text in ("w4a8", "w1a1", "w4afp"):
        layer = QuantLinear(8, 3, scheme=text)
        assert layer(x).shape == (0, 3)
        layer(x).sum().backward()
        layer.exact = True
        assert layer(x).shape == (0, 3)


def test_quantizing_a_layer_changes_its_class_and_nothing_else() -> None:
    layer = nn.Linear(6, 4)
    before, keys, attributes = layer.weight, list(layer.state_dict()), set(vars(layer))
    quantized = quantize_layer(layer, "w4a8")
    assert quantized is layer
    assert type(layer) is QuantLinear
    assert layer.weight is before
    assert list(layer.state_dict()) == keys
    assert "scheme=w4a8" in repr(layer)
    assert float_layer(quantized) is layer
    assert type(layer) is nn.Linear
    assert set(vars(layer)) == attributes


def test_subclasses_keep_their_own_methods() -> None:
    class Scaled(nn.Linear):
        def doubled(self) -> torch.Tensor:
            return self.weight * 2

    layer: Any = Scaled(6, 4)
    quantize_layer(layer, "w2a8")
    assert isinstance(layer, QuantLinear)
    assert isinstance(layer, Scaled)
    assert torch.equal(layer.doubled(), layer.weight * 2)
    assert type(float_layer(layer)) is Scaled


def test_layers_are_copied_and_pickled() -> None:
    layer = QuantLinear(6, 4, scheme="w4a8-static", act_scale=0.1)
    x = normal(2, 6)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(again(x), layer(x))
        assert again.scheme == layer.scheme


def test_static_scales_do_not_change_with_the_model() -> None:
    layer = QuantLinear(6, 4, scheme="w4a8-static", act_scale=0.1)
    layer.half().float()
    assert layer.act_scale == 0.1


def test_refused() -> None:
    with pytest.raises(ShapeError, match="do not divide"):
        QuantLinear(25, 4, scheme="w4a8g4")
    with pytest.raises(ShapeError, match="overflow"):
        QuantLinear(1 << 17, 1, scheme="w8a8")
    with pytest.raises(UsageError, match="no scale is known"):
        QuantLinear(8, 4, scheme="w4a8-static")
    with pytest.raises(UsageError, match="cannot be quantized"):
        quantize_layer(nn.LayerNorm(4), "w4a8")
    layer = nn.Linear(25, 4)
    with pytest.raises(Error):
        quantize_layer(layer, "w4a8g4")
    assert type(layer) is nn.Linear
    with pytest.raises(UsageError, match="quantized already"):
        quantize_layer(quantize_layer(layer, "w4a8"), "w4a8")
