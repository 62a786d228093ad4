"""Static activation scales of a torch model from sample data, one for each layer.

Every batch runs through the model once. Hooks see what each module receives; a mode sees what
functional layers receive (`functional`). `fewbit.quant.observer` makes scales of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fewbit.base.progress import progress
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.observer import Method, Observers, no_data
from fewbit.quant.program_calibration import calibrate_program
from fewbit.quant.recipe import RecipeLike
from fewbit.quant.torch.functional import LayerCall, LayerCalls, layer_name, weights_of
from fewbit.quant.torch.prepare import quantizable_layers, resolve_layers


def calibrate(
    model: nn.Module | Program,
    data: Iterable[Any],
    recipe: RecipeLike,
    method: Method = "minmax",
    percentile: float = 99.99,
) -> Calibration:
    """The static scale of every layer whose activations the recipe quantizes.

    Each item of `data` is what the model is called with: a tensor, a tuple of arguments, or a
    mapping of named ones; for a program, its inputs as arrays. Asymmetric layers get a zero point
    too; their method is "minmax".
    """
    if isinstance(model, Program):
        return calibrate_program(model, data, recipe, method, percentile)
    layers = {
        name: layer
        for name, layer in quantizable_layers(model).items()
        if not isinstance(layer, nn.Embedding)
    }
    observers = Observers(resolve_layers(model, recipe), method, percentile)
    with _watching(model, layers, observers), _evaluating(model):
        _run(model, data)
    return observers.calibration(expected=layers)


def _run(model: nn.Module, data: Iterable[Any]) -> None:
    total = len(data) if isinstance(data, Sized) else None
    batches = 0
    with progress("Calibrating", total=total) as step, torch.no_grad():
        for item in data:
            if isinstance(item, Tensor):
                model(item)
            elif isinstance(item, Mapping):
                model(**item)
            elif isinstance(item, tuple | list):
                model(*item)
            else:
                raise UsageError(
                    f"a {type(item).__name__} is not what a model is called with",
                    hint="give tensors, tuples of arguments, or mappings of named arguments",
                )
            batches += 1
            step()
    if not batches:
        raise no_data()


@contextmanager
def _watching(
    model: nn.Module, layers: Mapping[str, nn.Module], observers: Observers
) -> Generator[None]:
    """Layers are seen by hooks, and functions only outside of layers."""
    inside: list[str] = []

    def see(name: str, x: Tensor) -> None:
        if name in observers:
            observers.see(name, x.detach().float().cpu().numpy())

    def enter(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            see(name, args[0] if args else next(iter(kwargs.values())))
            inside.append(name)

        return hook

    def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        inside.pop()

    def look(name: str, call: LayerCall) -> Tensor:
        if not inside and call.activation is not None:
            see(name, call.activation)
        return call.plain()

    handles: list[RemovableHandle] = []
    for name, layer in layers.items():
        handles.append(layer.register_forward_pre_hook(enter(name), with_kwargs=True))
        handles.append(layer.register_forward_hook(leave))
    names = {id(tensor): layer_name(path) for path, tensor in weights_of(model).items()}
    try:
        with LayerCalls(names, look):
            yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _evaluating(model: nn.Module) -> Generator[None]:
    """The model in evaluation mode, and afterwards each module in its own mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
