"""Models that torchao has quantized: their weights are tensors of its own classes.

Two of these are integers with scales and integer zero points: `IntxUnpackedToInt8Tensor` (1 to 8
bits, by channel or group) and `Int8Tensor`. The 4-bit classes made for single kernels hold packed
data with float offsets, `u·s + b`, which is no `(u - z)·s`; they are refused. AWQ's factor for the
input stays a multiplication before the layer.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import numpy as np
from torch import Tensor, nn

from fewbit.base.typed_torch import attributes, named_modules, own_parameters
from fewbit.errors import Error, MissingToolError, Place, UnsupportedError
from fewbit.numerics import Quantized
from fewbit.quant.given import given_weight
from fewbit.quant.imported.plain import (
    Imported,
    ScaledLinear,
    need_weights,
    replace_module,
    set_weight,
)


def from_torchao(model: nn.Module) -> Imported:
    """A plain copy of a model after `torchao.quantization.quantize_`, and its weights.

    What torchao does to activations is not taken over: widths of activations are the recipe's.
    """
    try:
        from torchao.utils import TorchAOBaseTensor
    except ImportError as error:
        raise MissingToolError(
            f"torchao cannot be imported: {error}", hint="pip install torchao==0.18.0"
        ) from None
    plain = deepcopy(model)
    weights: dict[str, Quantized] = {}
    for name, module in list(named_modules(plain)):
        attributes(module).pop("extra_repr", None)  # torchao's, which expects a tensor of its own
        for parameter, tensor in list(own_parameters(module).items()):
            if not isinstance(tensor, TorchAOBaseTensor):
                continue
            if parameter != "weight":
                raise UnsupportedError(
                    f"torchao has quantized '{parameter}', which is no layer's weight",
                    place=Place(layer=name),
                )
            try:
                weights[name] = _weight(tensor)
            except Error as error:
                raise error.at(layer=name) from None
            plain = _with_weight(plain, name, module, weights[name])
    need_weights(weights, "torchao")
    return Imported(plain, weights)


def _weight(tensor: Any) -> Quantized:
    from torchao.quantization import (
        Int8Tensor,
        IntxUnpackedToInt8Tensor,
    )

    if isinstance(tensor, IntxUnpackedToInt8Tensor):
        bits = int(re.sub(r"\D", "", str(tensor.target_dtype)))
    elif isinstance(tensor, Int8Tensor):
        bits = 8
    else:
        raise UnsupportedError(
            f"a weight of torchao's {type(tensor).__name__} has no integers and scales to take",
            hint="quantize with IntxWeightOnlyConfig or Int8WeightOnlyConfig",
        )
    zeros = None if tensor.zero_point is None else _array(tensor.zero_point)
    return given_weight(_array(tensor.qdata), _array(tensor.scale), zeros, width=bits)


def _with_weight(model: nn.Module, name: str, module: Any, weight: Quantized) -> nn.Module:
    factor = getattr(module.weight, "act_pre_scale", None)
    if factor is not None:
        module = ScaledLinear(factor, weight.shape[0], module.bias)
        model = replace_module(model, name, module)
    set_weight(module, weight)
    return model


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
