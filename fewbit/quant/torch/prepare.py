# pyright: basic
"""Quantization-aware training: give a model's layers their schemes, and take them away again.

`prepare_qat` changes the layers of a model by a recipe and leaves everything else alone, so any
training loop and optimizer works on the result. `convert` gives the float model back with the
trained weights and, on each layer, the scheme it was trained for: quantizing that model by
`recipe_of(model)` rounds the very weights that training saw. `unprepare` leaves no trace.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from fewbit.errors import Error, UsageError
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe, RecipeLike
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.attention import QuantAttention
from fewbit.quant.torch.layers import QUANT_CLASSES, QuantLayer, float_layer, quantize_layer

RECORD = "fewbit_scheme"
"""The attribute in which `convert` leaves a layer's scheme."""


def quantizable_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that a recipe speaks of, by name, in the order of `named_modules`.

    A layer used in several places is listed once. Not listed are subclasses that compute something
    else in their own `forward`, and the insides of `nn.MultiheadAttention`, which takes the weights
    out of its layers without calling them.
    """
    hidden = {
        id(child)
        for module in model.modules()
        if isinstance(module, nn.MultiheadAttention)
        for child in module.modules()
    }
    return {
        name: module
        for name, module in model.named_modules()
        if _is_quantizable(module) and id(module) not in hidden
    }


def prepare_qat(
    model: nn.Module,
    recipe: RecipeLike,
    inplace: bool = False,
    calibration: Calibration | Mapping[str, float] | None = None,
) -> nn.Module:
    """The model with layers that compute with few bits and train straight through the rounding.

    A recipe with static activations needs their calibration.
    """
    if any(isinstance(module, QuantLayer) for module in model.modules()):
        raise UsageError("this model is prepared already", hint="use unprepare(model) first")
    schemes = Recipe.of(recipe).resolve(list(quantizable_layers(model)))
    prepared = model if inplace else copy.deepcopy(model)
    known = Calibration.of({} if calibration is None else calibration)
    try:
        for name, layer in quantizable_layers(prepared).items():
            _prepare_layer(name, layer, schemes[name], known)
    except BaseException:
        unprepare(prepared, inplace=True)
        raise
    return prepared


def convert(model: nn.Module, inplace: bool = False) -> nn.Module:
    """The float model with the trained weights and a record of each layer's scheme."""
    converted = model if inplace else copy.deepcopy(model)
    for layer in _quant_layers(converted):
        scheme = layer.scheme
        setattr(_restore(layer), RECORD, scheme)
    return converted


def unprepare(model: nn.Module, inplace: bool = False) -> nn.Module:
    """The float model again, with its weights as they are now and no record."""
    restored = model if inplace else copy.deepcopy(model)
    for layer in _quant_layers(restored):
        _restore(layer)
    for module in restored.modules():
        module.__dict__.pop(RECORD, None)
    return restored


def recipe_of(model: nn.Module) -> Recipe:
    """The recipe that a prepared or converted model follows, by exact names."""
    schemes = {name: _scheme_of(layer) for name, layer in quantizable_layers(model).items()}
    return Recipe.by_name(schemes)


def set_exact(model: nn.Module, exact: bool = True) -> nn.Module:
    """Let layers and attention compute in integers (no gradients), or with floats again."""
    for module in model.modules():
        if isinstance(module, QuantLayer | QuantAttention):
            module.exact = exact
    return model


def _is_quantizable(module: nn.Module) -> bool:
    if isinstance(module, QuantLayer):
        return True
    base = next((base for base in QUANT_CLASSES if isinstance(module, base)), None)
    return base is not None and type(module).forward is base.forward


def _prepare_layer(
    name: str, layer: nn.Module, scheme: LayerScheme, calibration: Calibration
) -> None:
    if scheme.is_float or (isinstance(layer, nn.Embedding) and scheme.weight is None):
        return
    scale, zero_point = calibration.get(name), calibration.zero_points.get(name)
    try:
        quantize_layer(layer, scheme, scale, zero_point)
    except Error as error:
        raise error.at(layer=name) from None
    layer.register_forward_pre_hook(_called_as_a_module)


def _called_as_a_module(module: nn.Module, args: Any) -> None:
    """Does nothing. `nn.TransformerEncoderLayer` has a fast path that takes the weights out of its
    layers without calling them; it is not taken where a layer has a hook."""


def _restore(layer: QuantLayer) -> nn.Module:
    hooks = layer._forward_pre_hooks
    for key in [key for key, hook in hooks.items() if hook is _called_as_a_module]:
        del hooks[key]
    return float_layer(layer)


def _quant_layers(model: nn.Module) -> Iterator[QuantLayer]:
    return (module for module in list(model.modules()) if isinstance(module, QuantLayer))


def _scheme_of(layer: nn.Module) -> LayerScheme:
    if isinstance(layer, QuantLayer):
        return layer.scheme
    return getattr(layer, RECORD, LayerScheme())
