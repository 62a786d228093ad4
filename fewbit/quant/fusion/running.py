"""Running a user's model to look at it, and leaving it as it was.

A run that only looks must not change the model: it is made in eval mode and without gradients, and
training flags and buffers (running statistics, caches) are put back afterwards. What a model is
called with has three spellings: one tensor, a tuple of positional arguments, or a dict of keyword
arguments. Several batches are any other iterable (list, generator, data loader) of such.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fewbit.base.typed_torch import own_buffers
from fewbit.errors import UsageError

Inputs = Tensor | tuple[Any, ...] | list[Any] | Mapping[str, Any]
"""The arguments of one call of a model."""

Batches = Tensor | tuple[Any, ...] | Mapping[str, Any] | Iterable[Inputs]
"""The arguments of one call, or an iterable of the arguments of several."""


def working_copy(model: object, inplace: bool) -> nn.Module:
    """The model that a transformation may change."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"a torch module is needed, not a {type(model).__name__}")
    if inplace:
        return model
    try:
        return copy.deepcopy(model)
    except Exception as problem:
        raise UsageError(
            f"the model cannot be copied: {type(problem).__name__}: {problem}",
            hint="pass inplace=True to change the model itself",
        ) from problem


def batches_of(inputs: Batches) -> list[Inputs]:
    """All batches, in a list, because they are run more than once."""
    if isinstance(inputs, (Tensor, tuple, Mapping)):
        return [cast(Inputs, inputs)]  # a tuple is the arguments of one call, never batches
    batches: list[Inputs] = list(inputs)
    if not batches:
        raise UsageError("there are no calibration inputs", hint="give at least one batch")
    return batches


def run(model: nn.Module, inputs: Inputs) -> Any:
    """Call the model; what goes wrong in it is the caller's to know, as one error."""
    args, kwargs = _arguments(inputs)
    try:
        return model(*args, **kwargs)
    except UsageError:
        raise
    except Exception as problem:
        raise UsageError(
            f"the model does not run on these inputs: {type(problem).__name__}: {problem}",
            hint="give a tensor, a tuple of positional arguments or a dict of keyword arguments, "
            "as the model's forward takes them, without labels",
        ) from problem


def _arguments(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


@contextmanager
def looking_at(model: nn.Module) -> Generator[None]:
    """Eval mode and no gradients inside; training flags and buffers as before afterwards."""
    training = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in own_buffers(module).items()
        if buffer is not None and not is_lazy(buffer)
    ]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                own_buffers(module)[name] = buffer.copy_(value)
        for module, flag in training:
            module.training = flag
