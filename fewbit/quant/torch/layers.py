"""Quantizable layers of torch that compute with few bits: drop-in, trainable, reversible.

A quantized layer *is* the torch layer with another class: the same parameters, the same
`state_dict`, the same object. `quantize_layer` changes the class and `float_layer` changes it
back, so optimizers, tied weights, layers used twice, hooks and references held elsewhere keep
working. What a layer computes is in `matmul`. It computes outside of torch function modes: the
one of `scope` looks for weights that are used without their layer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction
from torch.nn import functional

from fewbit.errors import UsageError
from fewbit.quant.scheme import LayerScheme, SchemeLike
from fewbit.quant.torch.fake_quant import Integers, quantize_weight
from fewbit.quant.torch.matmul import check_rounding, few_bit_lookup, few_bit_matmul


class QuantLayer(nn.Module):
    """What quantized layers share: the scheme, static scales, and the two ways to compute."""

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
        self.set_scheme(LayerScheme.of(scheme), act_scale, act_zero_point)

    def set_scheme(
        self, scheme: LayerScheme, act_scale: float | None, act_zero_point: int | None
    ) -> None:
        """Compute by this scheme from now on; refuse one that the weight's shape does not allow."""
        shape, is_table = tuple(self.weight.shape), isinstance(self, nn.Embedding)
        check_rounding(scheme, shape, act_scale, is_table=is_table)
        self.scheme = scheme
        self.exact = False
        self.act_scale = act_scale if scheme.static else None
        self.act_zero_point = act_zero_point if scheme.static and not scheme.symmetric else None

    def integers(self) -> Integers:
        """The weight's integers and scales, as a program would hold them."""
        return quantize_weight(self.weight, self.scheme)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scheme={self.scheme}"


class QuantLinear(QuantLayer, nn.Linear):
    """`nn.Linear` with one activation scale for each row."""

    def forward(self, input: Tensor) -> Tensor:
        with DisableTorchFunction():
            return few_bit_matmul(self, functional.linear, input, self.weight, self.bias, 0)


class _QuantConv(QuantLayer):
    """What the convolutions share: one activation scale for each sample.

    Padding with zeros is part of the operation; any other padding comes first, and the padded
    input is what is quantized.
    """

    RANK: int
    CONVOLVE: Callable[..., Tensor]

    def forward(self, input: Tensor) -> Tensor:
        layer: Any = self
        if input.dim() == self.RANK + 1:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        padding = layer.padding
        if layer.padding_mode != "zeros":
            input = functional.pad(
                input, layer._reversed_padding_repeated_twice, mode=layer.padding_mode
            )
            padding = 0
        operation = functools.partial(
            _convolve, type(self).CONVOLVE, layer.stride, padding, layer.dilation, layer.groups
        )
        with DisableTorchFunction():
            return few_bit_matmul(self, operation, input, layer.weight, layer.bias, self.RANK)


def _convolve(
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

    def forward(self, input: Tensor) -> Tensor:
        with DisableTorchFunction():
            if self.max_norm is not None:
                with torch.no_grad():
                    torch.embedding_renorm_(
                        self.weight, input.contiguous(), self.max_norm, self.norm_type
                    )
            return few_bit_lookup(self, functools.partial(self._take, input), self.weight)

    def _take(self, indices: Tensor, table: Tensor) -> Tensor:
        return functional.embedding(
            indices,
            table,
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
        layer.set_scheme(LayerScheme.of(scheme), act_scale, act_zero_point)
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
