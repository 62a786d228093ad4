"""A module that is called with structures that PyTorch knows, and returns a list of tensors.

While a module is traced, its class is replaced by one of the same name whose `forward` makes the
objects that the model expects, calls the model's own, and takes the result apart by name. So the
user needs no wrapper, and the module keeps its place: the names of layers have no prefix.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from fewbit.frontends.torch.structure import Key, has_objects, name_of, named_leaves, open_objects


class PlainCalls:
    """How a module is called, and what it calls its results, once it was."""

    def __init__(self, model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._given = _bind(model, arguments, named)
        (self.arguments, self.named), self._close = open_objects((arguments, named))
        self._plain = _bind(model, self.arguments, self.named)
        self._paths: list[tuple[Key, ...]] = []

    @property
    def output_names(self) -> list[str | None]:
        """For each part of what forward returns, None where it has but a position."""
        return [name_of(path) for path in self._paths]

    def call(self, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        args, kwargs = self._close((args, kwargs))
        leaves = named_leaves(forward(*args, **kwargs))
        self._paths = [path for path, _ in leaves]
        return [leaf for _, leaf in leaves]

    def spread(self, dynamic_shapes: Any) -> Any:
        """Let dimensions that are given for an object be those of each tensor in it."""
        if isinstance(dynamic_shapes, Mapping):
            shapes = cast("Mapping[str, Any]", dynamic_shapes)
            return {name: self._spread(name, shape) for name, shape in shapes.items()}
        if isinstance(dynamic_shapes, list | tuple):
            shapes = cast("list[Any]", dynamic_shapes)
            names = [*self._given, *[""] * len(shapes)]
            return tuple(self._spread(n, s) for n, s in zip(names, shapes, strict=False))
        return dynamic_shapes

    def _spread(self, name: str, shape: Any) -> Any:
        if not has_objects(self._given.get(name)) or not isinstance(shape, Mapping):
            return shape
        axes = cast("Mapping[Any, Any]", shape)
        if not axes or not all(isinstance(axis, int) for axis in axes):
            return axes
        return tree_map_only(torch.Tensor, lambda _: dict(axes), self._plain[name])


@contextmanager
def plain_calls(
    model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Generator[PlainCalls]:
    """Have the module take and return plain structures within the block."""
    calls, own = PlainCalls(model, arguments, named), type(model)
    # A library may have given this one module a forward of its own, which no class has.
    hidden = vars(model).pop("forward", None)
    function = hidden or own.forward

    @wraps(function)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> list[Any]:
        return calls.call(hidden or own.forward.__get__(self), args, kwargs)

    if hidden is not None:
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        taken = inspect.signature(hidden)
        parameters = [me, *taken.parameters.values()]
        cast(Any, forward).__signature__ = taken.replace(parameters=parameters)
    names = {"forward": forward, "__module__": own.__module__, "__qualname__": own.__qualname__}
    model.__class__ = type(own.__name__, (own,), names)
    try:
        yield calls
    finally:
        model.__class__ = own
        if hidden is not None:
            vars(model)["forward"] = hidden


def _bind(model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names that forward has for them; none where they do not fit."""
    try:
        bound = inspect.signature(model.forward).bind(*arguments, **named)
    except (TypeError, ValueError):
        return dict(named)
    return {**bound.arguments, **named}
