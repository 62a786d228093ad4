"""Arguments and results of any structure: objects as dictionaries of their tensors, and back.

PyTorch knows containers and the classes that are registered with it; an object of another class,
such as the caches of transformers, it cannot trace. Here such an object is opened: it becomes a
dictionary of those attributes that hold tensors, and is closed again by copying the object and
setting them. Nothing is registered, since that would last for the whole process and could not be
done a second time by whoever else wants to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import nn
from torch.utils import _pytree

Close: TypeAlias = Callable[[Any], Any]
"""Makes what was opened of its plain structure, with other tensors in it."""
Key: TypeAlias = str | int

_KNOWN = (torch.Tensor, nn.Module, type, torch.SymInt, torch.SymFloat, torch.SymBool)
"""What is passed on as it is, beside all that has no attributes."""


def open_objects(value: Any, around: frozenset[int] = frozenset()) -> tuple[Any, Close]:
    """Return a structure that PyTorch knows, and what makes the given one of it.

    An object that is in one of its own parts (`around`) is not opened a second time.
    """
    leaves, spec = _pytree.tree_flatten(value)
    opened = [_open(leaf, around) for leaf in leaves]
    plain = _pytree.tree_unflatten([each for each, _ in opened], spec)

    def close(given: Any) -> Any:
        parts = spec.flatten_up_to(given)
        whole = [close_one(part) for (_, close_one), part in zip(opened, parts, strict=True)]
        return _pytree.tree_unflatten(whole, spec)

    return plain, close


def has_objects(value: Any) -> bool:
    """Return whether there is something that PyTorch does not know, and that is no constant."""
    return any(_is_object(leaf) for leaf in _pytree.tree_leaves(value))


def fixed_parts(value: Any, around: frozenset[int] = frozenset()) -> tuple[Any, ...]:
    """Return what a trace takes for fixed in objects: their classes, and numbers and names."""
    parts: list[Any] = []
    for leaf in _pytree.tree_leaves(value):
        if not _is_object(leaf) or id(leaf) in around:
            continue
        parts.append(type(leaf))
        for name, each in _attributes(leaf).items():
            if isinstance(each, bool | int | float | str | torch.dtype):
                parts.append((name, each))
            parts += fixed_parts(each, around | {id(leaf)})
    return tuple(parts)


def clone_tensors(value: Any) -> Any:
    """Return a copy, with objects and tensors of its own."""
    plain, close = open_objects(value)
    return close(_pytree.tree_map_only(torch.Tensor, torch.clone, plain))


def named_leaves(value: Any) -> list[tuple[tuple[Key, ...], Any]]:
    """Return everything in a structure, with the keys, names and numbers that lead to it.

    Objects without tensors, such as an empty cache, are left out.
    """
    return list(_walk(value, (), frozenset()))


def _walk(
    value: Any, path: tuple[Key, ...], around: frozenset[int]
) -> Iterator[tuple[tuple[Key, ...], Any]]:
    children = _children(value)
    if children is None and _is_object(value):
        children = list(_tensor_attributes(value).items()) if id(value) not in around else []
        around |= {id(value)}
    if children is None:
        yield path, value
        return
    for key, child in children:
        yield from _walk(child, (*path, key), around)


def name_of(path: tuple[Key, ...]) -> str | None:
    """Return the name of a result: `past_key_values_layers_0_keys`; None for mere positions."""
    if all(isinstance(key, int) for key in path):
        return None
    head = "output" if isinstance(path[0], int) else ""
    return head + "_".join(map(str, path))


def _open(leaf: Any, around: frozenset[int]) -> tuple[Any, Close]:
    if not _is_object(leaf):
        # What forward writes into an object is seen in its results, not in its arguments.
        return leaf, _copy if around else lambda given: given
    if id(leaf) in around:
        return None, lambda _: leaf
    held = _tensor_attributes(leaf)
    if not held:
        return None, lambda _: _fresh(leaf)
    kept = {name: value for name, value in _attributes(leaf).items() if name not in held}
    plain, close_held = open_objects(held, around | {id(leaf)})

    def close(given: Any) -> Any:
        new = copy.copy(leaf)
        _attributes(new).update({name: _fresh(value) for name, value in kept.items()})
        _attributes(new).update(close_held(given))
        return new

    return plain, close


def _children(value: Any) -> list[tuple[Key, Any]] | None:
    """Return what a structure consists of; None for a leaf."""
    if isinstance(value, torch.Tensor):
        return None
    if isinstance(value, Mapping):
        return [(_key(key), child) for key, child in cast("Mapping[Any, Any]", value).items()]
    fields_of_tuple = getattr(value, "_fields", None)
    if isinstance(value, tuple) and fields_of_tuple is not None:
        return list(zip(fields_of_tuple, cast("tuple[Any, ...]", value), strict=True))
    if isinstance(value, list | tuple):
        return list(enumerate(cast("list[Any]", value)))
    if not _pytree.tree_is_leaf(value):
        parts = _pytree.tree_leaves(value, is_leaf=lambda each: each is not value)
        names = [f.name for f in fields(value)] if is_dataclass(value) else []
        return list(
            zip(names, parts, strict=True) if len(names) == len(parts) else enumerate(parts)
        )
    return None


def _key(key: Any) -> Key:
    return key if isinstance(key, int) else str(key)


def _is_object(leaf: Any) -> bool:
    return hasattr(leaf, "__dict__") and not isinstance(leaf, _KNOWN) and not callable(leaf)


def _attributes(value: Any) -> dict[str, Any]:
    return value.__dict__


def _tensor_attributes(value: Any) -> dict[str, Any]:
    """Return the attributes that hold tensors."""
    return {name: each for name, each in _attributes(value).items() if _holds_tensors(each)}


def _holds_tensors(value: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Return whether there are tensors in it; what refers back to itself is not followed."""
    if id(value) in seen:
        return False
    seen |= {id(value)}
    return any(
        isinstance(leaf, torch.Tensor)
        or (_is_object(leaf) and any(_holds_tensors(v, seen) for v in _attributes(leaf).values()))
        for leaf in _pytree.tree_leaves(value)
    )


def _copy(given: Any) -> Any:
    return given.clone() if isinstance(given, torch.Tensor) else given


def _fresh(value: Any) -> Any:
    """Return a copy of what forward may change in an object; what has no copy is shared."""
    if isinstance(value, nn.Module):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:
        return value
