"""Does a layer compute what its class promises? Asked of the layer itself, with numbers.

A subclass of `nn.Conv2d` may be a quantized convolution, into which a batch norm folds, or one
with an activation or a standardized weight inside, into which it does not. Their classes do not
tell; a few calls on random inputs with changed parameters do. Quantizers pass, since they follow
the scale of what they round, and a factor of two is exact in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import attributes, fork_rng, manual_seed, norm, own_parameters
from fewbit.quant.fusion.layers import Layer
from fewbit.quant.fusion.running import looking_at

EXACT = 1e-4
"""Relative; above rounding in float32, far below any effect worth the name."""
ROUGH = 0.3
"""Relative; the rounding of few-bit activations passes, a factor of two does not."""


def has_own_forward(module: nn.Module) -> bool:
    """Its forward is not that of a layer of torch."""
    return "forward" in vars(module) or not _of_torch(type(module).forward)


def is_plain(module: nn.Module) -> bool:
    """A layer of torch itself, which needs no questions."""
    return _of_torch(type(module)) and "forward" not in vars(module)


def _of_torch(thing: Any) -> bool:
    return thing.__module__.startswith("torch.nn.modules.")


def why_not_affine(layer: Layer) -> str | None:
    """Why scaling weight and bias would not scale the output; None if it does."""
    if is_plain(layer):
        return None
    return _try(layer, lambda: _check_bias(layer, layer) or _check_weight(layer))


def why_not_linear(layer: Layer) -> str | None:
    """Why a factor cannot be moved from the input into the weight; None if it can."""
    if is_plain(layer):
        return None
    return _try(layer, lambda: _check_weight(layer) or _check_input(layer))


def why_not_additive(layer: Layer, like: Layer) -> str | None:
    """Why a change of the bias would not appear in the output; None if it does.

    `like` is a layer of torch with the same inputs and outputs.
    """
    if is_plain(layer):
        return None
    return _try(layer, lambda: _check_bias(layer, like))


def why_not_scaled_by_weight(norm: Layer) -> str | None:
    """Why scaling the weight (and bias) would not scale the output; None if it does."""
    if is_plain(norm):
        return None
    return _try(norm, lambda: _check_norm(norm))


def _try(layer: Layer, check: Callable[[], str | None]) -> str | None:
    try:
        with looking_at(layer), fork_rng(devices=[]):
            manual_seed(0)
            return check()
    except Exception as problem:
        return f"it could not be tried alone ({type(problem).__name__}: {problem})"


def _check_bias(layer: Layer, like: Layer) -> str | None:
    x = _input_of(like)
    zero = _zero_bias(like)
    before = _call(layer, x, bias=zero)
    shift = zero + 2 * before.abs().amax() + 1
    shift[::2] *= -1  # both ways: an activation may be bounded from below, above, or both
    after = _call(layer, x, bias=shift)
    along_channels = shift.reshape(-1, *[1] * (like.weight.ndim - 2))
    if after.shape != before.shape or _differs(after, before + along_channels, EXACT):
        return "a change of its bias is not the same change of its output"
    return None


def _check_weight(layer: Layer) -> str | None:
    x, zero = _input_of(layer), _zero_bias(layer)
    once = _call(layer, x, weight=layer.weight, bias=zero)
    twice = _call(layer, x, weight=2 * layer.weight, bias=zero)
    if _differs(twice, 2 * once, EXACT):
        return "its output does not follow the scale of its weight"
    return None


def _check_input(layer: Layer) -> str | None:
    x, zero = _input_of(layer), _zero_bias(layer)
    whole = _call(layer, x, bias=zero)
    half = _call(layer, x / 2, bias=zero)
    if _differs(half, whole / 2, ROUGH):
        return "its output does not follow the scale of its input"
    return None


def _check_norm(norm: Layer) -> str | None:
    weight = norm.weight
    parameters = {name: value for name, value in own_parameters(norm).items() if value is not None}
    channels = weight.numel()
    x = torch.randn(2, channels + 1, channels).to(weight)  # the last axis, and no other
    factor = (torch.rand(channels) + 0.5).to(weight)
    before = _call(norm, x)
    after = _call(norm, x, **{name: factor * value for name, value in parameters.items()})
    if before.shape != x.shape or _differs(after, factor * before, EXACT):
        return "its output is not its weight times something"
    return None


def _call(layer: Layer, x: Tensor, **parameters: Tensor) -> Tensor:
    """The layer's forward, without its hooks, with other parameters."""
    before, own = dict(attributes(layer)), dict(own_parameters(layer))
    try:
        for name, value in parameters.items():
            attributes(layer).pop(name, None)  # a bias that is None may be a plain attribute
            own_parameters(layer)[name] = nn.Parameter(value, requires_grad=False)
        return layer.forward(x)
    finally:
        own_parameters(layer).clear()
        own_parameters(layer).update(own)
        attributes(layer).clear()
        attributes(layer).update(before)


def _zero_bias(layer: Layer) -> Tensor:
    return torch.zeros(layer.weight.shape[0]).to(layer.weight)


def _input_of(layer: Layer) -> Tensor:
    """A random batch that this layer takes."""
    if isinstance(layer, nn.Linear):
        return torch.randn(4, layer.in_features).to(layer.weight)
    padding: tuple[int, ...] = (0,) if isinstance(layer.padding, str) else layer.padding
    size = [
        2 * dilation * kernel + max(padding)
        for dilation, kernel in zip(layer.dilation, layer.kernel_size, strict=True)
    ]
    return torch.randn(2, layer.in_channels, *size).to(layer.weight)


def _differs(got: Tensor, expected: Tensor, tolerance: float) -> bool:
    size = norm(expected.double())
    error = norm(got.double() - expected.double())
    return not math.isfinite(error) or error > tolerance * max(size, 1e-12)
