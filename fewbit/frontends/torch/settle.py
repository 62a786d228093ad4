"""A module whose calls change nothing that a trace would lose.

Export looks only at tensors: state that `forward` keeps in plain attributes would be frozen into
the graph without a word. The module is therefore run beforehand, and an attribute that every call
changes is refused. What only a first call changes (a table that is kept, weights that are scaled
once) is settled after it, provided that a second call gives the same results. Tensors that each
call leaves behind are no state if none reads them: if a call on other inputs in between, which
leaves others behind, makes no difference.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map_only

from fewbit.base.typed_torch import forward_pre_hooks, named_modules, own_parameters, write_counts
from fewbit.errors import Place, UnsupportedError, UsageError
from fewbit.frontends.torch.structure import clone_tensors, named_leaves

_MODULE_FIELDS = frozenset(vars(nn.Module()))
_Attributes = dict[str, dict[str, Any]]


@contextmanager
def settle(model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Generator[None]:
    """Have the module as it is after a first call; refuse one that each call changes."""
    before, versions = _attributes(model), write_counts(model.parameters())
    try:
        first = _run(model, arguments, named)
        if changed := list(_changes(model, before)):
            _refuse_unsettled(model, arguments, named, first, changed)
        yield
    finally:
        # Where a call changed weights too, attributes say so: the two must go together.
        if write_counts(model.parameters()) == versions:
            _put_back(model, before)


def _refuse_unsettled(
    model: nn.Module,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    first: list[Any],
    changed: list[tuple[str, str]],
) -> None:
    after, versions = _attributes(model), write_counts(model.parameters())
    second = _run(model, arguments, named)
    again = list(_changes(model, after))
    same = len(first) == len(second) and all(map(_are_equal, first, second))
    settled = same and write_counts(model.parameters()) == versions
    if settled and (not again or _are_left_behind(model, arguments, named, second, again)):
        return
    names = ", ".join(f"{m or 'the model'}.{attribute}" for m, attribute in again or changed)
    raise UnsupportedError(
        f"forward changes {names}, which the exported program would not",
        place=Place(layer=(again or changed)[0][0] or None),
        hint="keep state in a buffer (register_buffer) that is updated in place, or make it an "
        "input and an output",
    )


def _are_left_behind(
    model: nn.Module,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    expected: list[Any],
    changed: list[tuple[str, str]],
) -> bool:
    """Tell whether attributes hold tensors that a call writes, and that the next does not read."""
    modules = dict(named_modules(model))

    def leaves() -> list[list[Any]]:
        return [tree_flatten(getattr(modules[name], attribute))[0] for name, attribute in changed]

    before = leaves()
    try:
        _run(model, *tree_map_only(torch.Tensor, _other, (arguments, named)))
    except UsageError:  # inputs that it does not take
        return False
    for old, new in zip(before, leaves(), strict=True):
        if not all(isinstance(leaf, torch.Tensor) for leaf in (*old, *new)):
            return False
        if len(old) == len(new) and all(map(_are_equal, old, new)):
            return False  # which would show nothing
    again = _run(model, arguments, named)
    return len(again) == len(expected) and all(map(_are_equal, again, expected))


def _other(x: torch.Tensor) -> torch.Tensor:
    """Return other values of an input: floats that are new, or the same elements in reverse."""
    if not x.is_floating_point():
        return x.flatten().flip(0).reshape(x.shape)
    generator = torch.Generator().manual_seed(1)
    return torch.randn(x.shape, generator=generator).to(x.dtype)


def _run(model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return the results of a call on copies; buffers are as before."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    args, kwargs = clone_tensors((arguments, named))
    try:
        return [leaf for _, leaf in named_leaves(model(*args, **kwargs))]
    except Exception as e:
        raise UsageError(
            f"the model does not run on the example inputs: {type(e).__name__}: {first_line(e)}",
            hint="pass example_inputs=(...) as the model is called, or its shapes, "
            "input_shapes=[...], on the command line --input-shape 1x3x32x32",
        ) from e
    finally:
        for name, buffer in model.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])


def _attributes(model: nn.Module) -> _Attributes:
    return {name: _plain_attributes(module) for name, module in named_modules(model)}


def _plain_attributes(module: nn.Module) -> dict[str, Any]:
    return {k: v for k, v in vars(module).items() if k not in _MODULE_FIELDS}


def _changes(model: nn.Module, before: _Attributes) -> Iterator[tuple[str, str]]:
    """Yield attributes that a call made, or that are now something else."""
    for name, module in named_modules(model):
        old = before.get(name, {})
        for attribute, value in _plain_attributes(module).items():
            if attribute in old and attribute in _hooked_weights(module):
                continue
            if attribute not in old or _differ(value, old[attribute]):
                yield name, attribute


def _hooked_weights(module: nn.Module) -> set[str | None]:
    """Return weights that a hook computes before each call: by weight norm, pruning."""
    names = ("name", "_tensor_name")
    hooks = forward_pre_hooks(module).values()
    hooked = {getattr(hook, name, None) for hook in hooks for name in names}
    parameters = own_parameters(module)
    return {name for name in hooked if {f"{name}_v", f"{name}_orig"} & parameters.keys()}


def _put_back(model: nn.Module, before: _Attributes) -> None:
    for name, module in named_modules(model):
        old = before.get(name, {})
        for attribute, value in _plain_attributes(module).items():
            if attribute not in old:
                delattr(module, attribute)
            elif value is not old[attribute]:
                setattr(module, attribute, old[attribute])


def _differ(a: Any, b: Any) -> bool:
    """Return whether two things, or what is in them, differ; no tensor is like another."""
    if a is b:
        return False
    (in_a, structure_a), (in_b, structure_b) = tree_flatten(a), tree_flatten(b)
    if structure_a != structure_b:
        return True
    return any(_leaves_differ(*leaves) for leaves in zip(in_a, in_b, strict=True))


def _leaves_differ(a: Any, b: Any) -> bool:
    if a is b:
        return False
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return True
    try:
        return bool(a != b)
    except Exception:  # arrays are neither equal nor unequal
        return True


def _are_equal(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return not _leaves_differ(a, b)
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def first_line(e: Exception) -> str:
    return next((line.strip() for line in str(e).splitlines() if line.strip()), "")
