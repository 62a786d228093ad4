# pyright: basic
"""Quantizable layers of torch that compute with few bits: drop-in, trainable, reversible.

A quantized layer *is* the torch layer with another class: the same parameters, the same
`state_dict`, the same object. `quantize_layer` changes the class and `float_layer` changes it
back, so optimizers, tied weights, layers used twice, hooks and references held elsewhere keep
working. Normally a layer multiplies fake-quantized floats, which trains; in `exact` mode it
multiplies integers and scales the sums in the order that `fewbit.numerics` fixes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewbit.errors import UsageError
from fewbit.numerics import ActivationGranularity, check_accumulator, weight_scale_shape
from fewbit.quant.scheme import LayerScheme, SchemeLike
from fewbit.quant.torch.fake_quant import (
    Integers,
    fake_quant_activation,
    fake_quant_weight,
    quantize_activation,
    quantize_weight,
)

Product = Callable[[Tensor, Tensor], Tensor]
"""A layer's operation, without its bias, on an activation and a weight."""


class QuantLayer(nn.Module):
    """What quantized layers share: the scheme, static scales, and the two ways to compute."""

    ROWS: ActivationGranularity
    weight: Tensor
    scheme: LayerScheme
    exact: bool
    act_scale: float | None
    act_zero_point: int | None
    float_class: type[nn.Module]

    def __init__(
        self,
        *args: Any,
        scheme: SchemeLike,
        act_scale: float | None = None,
        act_zero_point: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.float_class = _base_of(type(self))
        self._set_scheme(LayerScheme.of(scheme), act_scale, act_zero_point)

    def _set_scheme(
        self, scheme: LayerScheme, act_scale: float | None, act_zero_point: int | None
    ) -> None:
        _check(self, scheme, act_scale)
        self.scheme = scheme
        self.exact = False
        self.act_scale = act_scale if scheme.static else None
        self.act_zero_point = act_zero_point if scheme.static and not scheme.symmetric else None

    def integers(self) -> Integers:
        """The weight's integers and scales, as a program would hold them."""
        return quantize_weight(self.weight, self.scheme)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scheme={self.scheme}"

    def _product(self, x: Tensor, product: Product, bias: Tensor | None) -> Tensor:
        """The layer on `x`, whose bias is shaped to be added to the result."""
        if self.exact:
            with torch.no_grad():
                return self._exact(x, product, bias)
        rounded = fake_quant_activation(x, self.scheme.act, self.ROWS, *self._static(x))
        y = product(rounded, fake_quant_weight(self.weight, self.scheme))
        return y if bias is None else y + bias

    def _exact(self, x: Tensor, product: Product, bias: Tensor | None) -> Tensor:
        scheme = self.scheme
        if scheme.weight is None or scheme.act is None:
            real = fake_quant_activation(x.float(), scheme.act, self.ROWS, *self._static(x))
            y = product(real, fake_quant_weight(self.weight.float(), scheme))
        else:
            scale, zero_point = self._static(x)
            xs = quantize_activation(x, scheme.act, self.ROWS, scale=scale, zero_point=zero_point)
            y = _integer_product(xs, self.integers(), product, self._channel_shape())
        return (y if bias is None else y + bias.float()).to(x.dtype)

    def _static(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The static scale and zero point, as float32 scalars beside `x`."""
        scale, zero_point = (
            None if value is None else torch.tensor(value, dtype=torch.float32, device=x.device)
            for value in (self.act_scale, self.act_zero_point)
        )
        return scale, zero_point

    def _channel_shape(self) -> tuple[int, ...]:
        """How one number for each output channel is shaped to broadcast over the result."""
        raise NotImplementedError


class QuantLinear(QuantLayer, nn.Linear):
    """`nn.Linear` with one activation scale for each row."""

    ROWS = "row"

    def forward(self, x: Tensor) -> Tensor:
        return self._product(x, functional.linear, self.bias)

    def _channel_shape(self) -> tuple[int, ...]:
        return (-1,)


class _QuantConv(QuantLayer):
    """What the convolutions share: one activation scale for each sample.

    Padding with zeros is part of the operation; any other padding comes first, and the padded
    input is what is quantized.
    """

    ROWS = "sample"
    RANK: int
    CONVOLVE: Callable[..., Tensor]

    def forward(self, x: Tensor) -> Tensor:
        layer: Any = self
        if x.dim() == self.RANK + 1:
            return self.forward(x.unsqueeze(0)).squeeze(0)
        padding = layer.padding
        if layer.padding_mode != "zeros":
            x = functional.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode)
            padding = 0
        product = functools.partial(
            _convolved, type(self).CONVOLVE, layer.stride, padding, layer.dilation, layer.groups
        )
        bias = layer.bias
        return self._product(x, product, None if bias is None else bias.view(-1, *[1] * self.RANK))

    def _channel_shape(self) -> tuple[int, ...]:
        return (-1, *[1] * self.RANK)


def _convolved(
    convolve: Callable[..., Tensor],
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    x: Tensor,
    weight: Tensor,
) -> Tensor:
    return convolve(x, weight, None, stride, padding, dilation, groups)


class QuantConv1d(_QuantConv, nn.Conv1d):
    """`nn.Conv1d` with one activation scale for each sample."""

    RANK = 1
    CONVOLVE = staticmethod(functional.conv1d)


class QuantConv2d(_QuantConv, nn.Conv2d):
    """`nn.Conv2d` with one activation scale for each sample."""

    RANK = 2
    CONVOLVE = staticmethod(functional.conv2d)


class QuantEmbedding(QuantLayer, nn.Embedding):
    """`nn.Embedding` with a few-bit table; its indices are no activations."""

    ROWS = "row"

    def forward(self, indices: Tensor) -> Tensor:
        if self.scheme.granularity != "tensor":
            taken = nn.Embedding.forward(self, indices)
            if taken.numel() == 0:
                return taken
            rows = taken.reshape(math.prod(taken.shape[:-1]), taken.shape[-1])
            return fake_quant_weight(rows, self.scheme).reshape(taken.shape)
        if self.max_norm is not None:
            with torch.no_grad():
                torch.embedding_renorm_(
                    self.weight, indices.contiguous(), self.max_norm, self.norm_type
                )
        return functional.embedding(
            indices,
            fake_quant_weight(self.weight, self.scheme),
            self.padding_idx,
            scale_grad_by_freq=self.scale_grad_by_freq,
            sparse=self.sparse,
        )


QUANT_CLASSES: dict[type[nn.Module], type[QuantLayer]] = {
    nn.Linear: QuantLinear,
    nn.Conv1d: QuantConv1d,
    nn.Conv2d: QuantConv2d,
    nn.Embedding: QuantEmbedding,
}
"""The quantizable layers, and what each becomes."""


def quantize_layer(
    layer: nn.Module,
    scheme: SchemeLike,
    act_scale: float | None = None,
    act_zero_point: int | None = None,
) -> QuantLayer:
    """Make a quantized layer of a float one, in place."""
    if isinstance(layer, QuantLayer):
        raise UsageError("this layer is quantized already", hint="use unprepare first")
    cls = type(layer)
    quant_class = _quant_class(cls)
    layer.__class__ = quant_class
    assert isinstance(layer, QuantLayer)
    try:
        layer.float_class = cls
        layer._set_scheme(LayerScheme.of(scheme), act_scale, act_zero_point)
    except BaseException:
        float_layer(layer)
        raise
    return layer


def float_layer(layer: QuantLayer) -> nn.Module:
    """Undo `quantize_layer`, in place."""
    cls = layer.float_class
    for name in ("scheme", "exact", "act_scale", "act_zero_point", "float_class"):
        layer.__dict__.pop(name, None)
    layer.__class__ = cls  # pyright: ignore[reportAttributeAccessIssue]
    return layer


@functools.cache
def _quant_class(cls: type[nn.Module]) -> type[QuantLayer]:
    base = _base_of(cls)
    if cls is base:
        return QUANT_CLASSES[base]
    return type(f"Quant{cls.__name__}", (QUANT_CLASSES[base], cls), {})


def _base_of(cls: type[nn.Module]) -> type[nn.Module]:
    for base in QUANT_CLASSES:
        if issubclass(cls, base):
            return base
    known = ", ".join(base.__name__ for base in QUANT_CLASSES)
    raise UsageError(f"a {cls.__name__} cannot be quantized", hint=f"layers that can: {known}")


def _check(layer: QuantLayer, scheme: LayerScheme, act_scale: float | None) -> None:
    """Refuse what the shapes do not allow, and static scales that are missing."""
    shape = tuple(layer.weight.shape)
    act = None if isinstance(layer, nn.Embedding) else scheme.act
    if scheme.weight is not None:
        scales = weight_scale_shape(shape, scheme.granularity, scheme.group)
        groups = scales[1] if len(scales) == 2 else 1
        if act is not None:
            zero_points = not scheme.symmetric
            both = zero_points if scheme.static else "w" if zero_points else False
            check_accumulator(math.prod(shape[1:]) // groups, act, scheme.weight, both)
    if scheme.static and act is not None and act_scale is None:
        raise UsageError(
            f"the scheme '{scheme}' is static, and no scale is known",
            hint="calibrate first: prepare_qat(model, recipe, calibration=calibrate(...))",
        )


def _integer_product(
    x: Integers, w: Integers, product: Product, channel_shape: tuple[int, ...]
) -> Tensor:
    """Σ over groups, in order, of acc · s_x · s_w; sums of integers are exact in float64."""
    xs, ws = x.centered().double(), w.centered().double()
    x_scale = x.scale.reshape(*x.scale.shape, *[1] * (xs.dim() - x.scale.dim()))
    scales = list(w.scale.T) if w.scale.dim() == 2 else [w.scale]
    total = None
    for index, scale in enumerate(scales):
        part = ws if len(scales) == 1 else _only_group(ws, index, len(scales))
        scale = scale if scale.dim() == 0 else scale.reshape(channel_shape)
        term = product(xs, part).float() * x_scale * scale
        total = term if total is None else total + term
    assert total is not None
    return total


def _only_group(weight: Tensor, index: int, groups: int) -> Tensor:
    """The weight with every other group along K set to zero."""
    runs = weight.reshape(weight.shape[0], groups, -1)
    kept = torch.zeros_like(runs)
    kept[:, index] = runs[:, index]
    return kept.reshape(weight.shape)
