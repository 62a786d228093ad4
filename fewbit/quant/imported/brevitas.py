"""Models of brevitas layers, after GPTQ or any other of its algorithms.

Brevitas keeps a float weight and quantizes it in every forward pass; `quant_weight()` is the
result, with integers, scale and zero point, and that is taken. Its layers become torch's own.
Layers that also quantize inputs, outputs or biases are refused, since a recipe says what happens
to activations, and leaving that out would be another model than the one that was calibrated.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from fewbit.base.typed_torch import named_modules
from fewbit.errors import Error, MissingToolError, Place, UnsupportedError
from fewbit.numerics import Quantized
from fewbit.quant.given import given_weight
from fewbit.quant.imported.plain import Imported, need_weights, replace_module, set_weight

_CONVOLUTIONS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d)


def from_brevitas(model: nn.Module) -> Imported:
    """A copy of a model with torch's layers in place of brevitas's, and its weights."""
    try:
        from brevitas.nn.mixin import QuantWeightMixin
    except ImportError as error:
        raise MissingToolError(
            f"brevitas cannot be imported: {error}", hint="pip install brevitas==0.13.4"
        ) from None
    plain = deepcopy(model).eval()
    weights: dict[str, Quantized] = {}
    modules: dict[str, Any] = dict(named_modules(plain))
    for name, module in modules.items():
        if not _is_quantized(module, QuantWeightMixin):
            continue
        try:
            weights[name] = _weight(module)
            layer = _plain_layer(module)
        except Error as error:
            raise error.at(layer=name) from None
        set_weight(layer, weights[name])
        plain = replace_module(plain, name, layer)
    need_weights(weights, "brevitas")
    _check_plain(plain)
    return Imported(plain, weights)


@torch.no_grad()
def _weight(module: Any) -> Quantized:
    tensor = module.quant_weight()
    if not hasattr(tensor, "int"):
        raise UnsupportedError(
            f"brevitas gives a {type(tensor).__name__} for this weight, which is not integers"
        )
    # A tensor in groups has its scales once for each group there, and spread over K elsewhere.
    scale = getattr(tensor, "scale_", tensor.scale)
    zeros = getattr(tensor, "zero_point_", tensor.zero_point)
    if hasattr(tensor, "group_dim"):
        _check_groups(tensor, module)
    return given_weight(
        tensor.int().numpy(),
        scale.float().numpy(),
        zeros.float().expand_as(scale).numpy(),
        width=int(tensor.bit_width.item()),
        signed=bool(tensor.signed),
    )


def _is_quantized(module: Any, kind: type) -> bool:
    return isinstance(module, kind) and bool(module.weight_quant.is_quant_enabled)


def _check_groups(tensor: Any, module: Any) -> None:
    kernel = module.weight[0, 0].numel()
    if tensor.group_dim != 1 or kernel != 1 or module.weight.shape[1] % tensor.group_size:
        raise UnsupportedError(
            "groups of this weight are not runs of its inputs",
            hint="use groups that divide the inputs of a Linear, or one scale for each channel",
        )


def _plain_layer(module: Any) -> nn.Module:
    for what in ("input_quant", "output_quant", "bias_quant"):
        proxy = getattr(module, what, None)
        if proxy is not None and proxy.is_quant_enabled:
            raise UnsupportedError(
                f"the layer has a {what} of its own",
                hint="quantize weights only; fewbit's recipe has the widths of activations",
            )
    layer = _without_values(module)
    if module.bias is not None:
        layer.bias = nn.Parameter(module.bias.detach().clone())
    return layer


def _without_values(module: Any) -> nn.Module:
    bias = module.bias is not None
    if isinstance(module, nn.Linear):
        return nn.Linear(module.in_features, module.out_features, bias)
    kind = next((kind for kind in _CONVOLUTIONS if isinstance(module, kind)), None)
    if kind is None:
        raise UnsupportedError(f"{type(module).__name__} has no plain layer in its place")
    shape = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation")
    named = {name: getattr(module, name) for name in (*shape, "groups", "padding_mode")}
    return kind(**named, bias=bias)


def _check_plain(model: nn.Module) -> None:
    for name, module in named_modules(model):
        if type(module).__module__.startswith("brevitas."):
            raise UnsupportedError(
                f"a {type(module).__name__} of brevitas is left in the model",
                place=Place(layer=name),
                hint="use torch's own modules between the layers",
            )
