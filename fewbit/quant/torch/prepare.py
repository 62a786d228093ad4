"""Quantization-aware training: give a model's layers their schemes, and take them away again.

`prepare_qat` changes the layers of a model by a recipe and leaves everything else alone, so any
training loop and optimizer works on the result. Layers that are modules become quantized layers
(`layers`). Those that are calls of a function on a weight, such as the projections of
`nn.MultiheadAttention`, are rounded in the scope (`scope`) of the model, and again of the module
that holds the weight, so that it may be called alone.

`convert` gives the float model back with the trained weights and the schemes that they were trained
for: quantizing that model by `recipe_of(model)` rounds the very weights that training saw.
`unprepare` leaves no trace.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from fewbit.base.typed_torch import forward_pre_hooks, named_modules
from fewbit.errors import Error, UsageError
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe, RecipeLike
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.attention import QuantAttention
from fewbit.quant.torch.functional import WEIGHT, held_tensor, layer_name, weights_of
from fewbit.quant.torch.layers import QUANT_CLASSES, QuantLayer, float_layer, quantize_layer
from fewbit.quant.torch.scope import FewBitWeight, QuantScope, dissolve_scope, make_scope

RECORD = "fewbit_scheme"
"""The attribute in which `convert` leaves a layer's scheme."""
RECORDS = "fewbit_schemes"
"""The attribute in which it leaves those of functional layers, on the modules around them."""


def quantizable_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that are modules, by name, in the order of `named_modules`.

    These are what lists of widths count. A layer used in several places is listed once. Not listed
    are functional layers: subclasses that compute something else in their own `forward`, and the
    insides of `nn.MultiheadAttention`. A model that is one layer is named after
    its weight, as in a program.
    """
    inside = {id(part) for attention in _attentions(model) for part in attention.modules()}
    return {
        name or WEIGHT: module
        for name, module in named_modules(model)
        if _is_quantizable(module) and id(module) not in inside
    }


def resolve_layers(model: nn.Module, recipe: RecipeLike) -> dict[str, LayerScheme]:
    """The scheme of every layer, and of every tensor that would be one if a function took it.

    Lists of widths count layers that are modules; the others stay float.
    """
    recipe = Recipe.of(recipe)
    if recipe.cache is not None:
        raise UsageError(
            f"the recipe says 'cache={recipe.cache}', and a module in training keeps no tokens",
            hint="leave it out; it is for checkpoints of language models",
        )
    layers = list(quantizable_layers(model))
    others = [name for name in map(layer_name, weights_of(model)) if name not in layers]
    if recipe.order is not None:
        return recipe.resolve(layers) | dict.fromkeys(others, LayerScheme())
    return recipe.resolve([*layers, *others])


def prepare_qat(
    model: nn.Module,
    recipe: RecipeLike,
    inplace: bool = False,
    calibration: Calibration | Mapping[str, float] | None = None,
) -> nn.Module:
    """The model with layers that compute with few bits and train straight through the rounding.

    A recipe with static activations needs their calibration.
    """
    if is_prepared(model):
        raise UsageError("this model is prepared already", hint="use unprepare(model) first")
    schemes = resolve_layers(model, recipe)
    prepared = model if inplace else copy.deepcopy(model)
    known = Calibration.of({} if calibration is None else calibration)
    try:
        for name, layer in quantizable_layers(prepared).items():
            _prepare_layer(name, layer, schemes[name], known)
        _prepare_functions(prepared, schemes, known)
    except BaseException:
        unprepare(prepared, inplace=True)
        raise
    return prepared


def convert(model: nn.Module, inplace: bool = False) -> nn.Module:
    """The float model with the trained weights and a record of each layer's scheme."""
    converted = model if inplace else copy.deepcopy(model)
    for scope in _scopes(converted):
        schemes = _schemes_of(scope)
        setattr(dissolve_scope(scope), RECORDS, schemes)
    for layer in _quant_layers(converted):
        scheme = layer.scheme
        setattr(_restore(layer), RECORD, scheme)
    return converted


def unprepare(model: nn.Module, inplace: bool = False) -> nn.Module:
    """The float model again, with its weights as they are now and no record."""
    restored = model if inplace else copy.deepcopy(model)
    for scope in _scopes(restored):
        dissolve_scope(scope)
    for layer in _quant_layers(restored):
        _restore(layer)
    for module in restored.modules():
        module.__dict__.pop(RECORD, None)
        module.__dict__.pop(RECORDS, None)
    return restored


def recipe_of(model: nn.Module) -> Recipe:
    """The recipe that a prepared or converted model follows, by exact names.

    It has those functional layers that have run.
    """
    layers = quantizable_layers(model)
    schemes = {name: _scheme_of(layer) for name, layer in layers.items()}
    for module_name, module in named_modules(model):
        prefix = f"{module_name}." if module_name else ""
        functional = _schemes_of(module).items()
        schemes |= {layer_name(prefix + path): scheme for path, scheme in functional}
    return Recipe.by_name(schemes)


def is_prepared(model: nn.Module) -> bool:
    return any(isinstance(module, QuantLayer | QuantScope) for module in model.modules())


def set_exact(model: nn.Module, exact: bool = True) -> nn.Module:
    """Let layers and attention compute in integers (no gradients), or with floats again."""
    for module in model.modules():
        if isinstance(module, QuantLayer | QuantAttention):
            module.exact = exact
        if isinstance(module, QuantScope):
            for weight in module.few_bit_weights.values():
                weight.exact = exact
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


def _prepare_functions(
    model: nn.Module, schemes: Mapping[str, LayerScheme], calibration: Calibration
) -> None:
    """Scopes for the model and for modules with weights that no quantized layer holds."""
    tensors = weights_of(model)
    weights: dict[str, FewBitWeight] = {}
    homes: dict[str, nn.Module] = {"": model}
    for path in tensors:
        name = layer_name(path)
        if schemes[name].is_float:
            continue
        home_path, home = _home_of(model, path)
        if not isinstance(home, QuantLayer):
            homes[home_path] = home
        weights[path] = _few_bit_weight(name, schemes[name], calibration)
        weights[path].used = None if _takes_its_weights(home) and WEIGHT in path else False
    if not weights:
        return
    _keep_float(model, {id(tensors[path]) for path in weights})
    for home_path, home in homes.items():
        prefix = f"{home_path}." if home_path else ""
        inside = {p.removeprefix(prefix): w for p, w in weights.items() if p.startswith(prefix)}
        if not isinstance(home, QuantLayer | QuantScope):
            make_scope(home, inside)


def _few_bit_weight(name: str, scheme: LayerScheme, calibration: Calibration) -> FewBitWeight:
    if not scheme.static:
        return FewBitWeight(name, scheme)
    zero_point = None if scheme.symmetric else calibration.zero_points.get(name)
    return FewBitWeight(name, scheme, calibration.get(name), zero_point)


def _keep_float(model: nn.Module, rounded: set[int]) -> None:
    """Layers that stay float although their weight is tied to one that is rounded."""
    for name, layer in quantizable_layers(model).items():
        if not isinstance(layer, QuantLayer) and id(held_tensor(layer, WEIGHT)) in rounded:
            make_scope(layer, {WEIGHT: FewBitWeight(name, LayerScheme())})


def _home_of(model: nn.Module, path: str) -> tuple[str, nn.Module]:
    """The module that takes a weight to functions: the one that holds it, or attention around."""
    owner = path.rpartition(".")[0]
    for name, module in named_modules(model):
        if isinstance(module, nn.MultiheadAttention) and f"{owner}.".startswith(f"{name}."):
            return name, module
    return owner, model.get_submodule(owner)


def _takes_its_weights(module: nn.Module) -> bool:
    """Return whether a module is known to take its own weights to functions."""
    return isinstance(module, (nn.MultiheadAttention, nn.RNNBase, *QUANT_CLASSES))


def _called_as_a_module(module: nn.Module, args: Any) -> None:
    """Does nothing. `nn.TransformerEncoderLayer` has a fast path that takes the weights out of its
    layers without calling them; it is not taken where a layer has a hook."""


def _restore(layer: QuantLayer) -> nn.Module:
    hooks = forward_pre_hooks(layer)
    for key in [key for key, hook in hooks.items() if hook is _called_as_a_module]:
        del hooks[key]
    return float_layer(layer)


def _quant_layers(model: nn.Module) -> Iterator[QuantLayer]:
    return (module for module in list(model.modules()) if isinstance(module, QuantLayer))


def _scopes(model: nn.Module) -> list[QuantScope]:
    return [module for module in model.modules() if isinstance(module, QuantScope)]


def _attentions(model: nn.Module) -> Iterator[nn.MultiheadAttention]:
    return (module for module in model.modules() if isinstance(module, nn.MultiheadAttention))


def _schemes_of(module: nn.Module) -> Mapping[str, LayerScheme]:
    """The schemes of functional layers in this module, by path of the weight."""
    if not isinstance(module, QuantScope):
        return getattr(module, RECORDS, {})
    return {
        path: weight.scheme
        for path, weight in module.few_bit_weights.items()
        if weight.used is not False and not weight.scheme.is_float
    }


def _scheme_of(layer: nn.Module) -> LayerScheme:
    if isinstance(layer, QuantLayer):
        return layer.scheme
    return getattr(layer, RECORD, LayerScheme())
