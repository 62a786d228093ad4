"""Tensors that share memory, in a graph whose ops only return values.

A write changes all views of a tensor. Here it gives a new value for the tensor that owns the
memory, and a view that is read after it is computed anew from that. So each view knows how it was
first computed, and `PUTS` has for each kind of view how a tensor is with the view written into it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

aten = torch.ops.aten
SAME = (aten.alias.default, aten.detach.default, aten.detach_.default)
"""Ops that return their operand, as far as values go."""
_OTHER_MEMORY = (aten.set, aten.resize)


class View:
    """A value of a graph, and the node that has it after all writes so far."""

    def __init__(self, node: Node, parent: View | None = None) -> None:
        self.made = node
        """How it was computed first, from the parent where it shares the parent's memory."""
        self.node = node
        self.parent = parent
        self.root = self if parent is None else parent.root
        """The view that owns the memory."""
        self.writes = 0
        """For an owner, how often its memory was written."""
        self.seen = self.root.writes
        """How many of these writes the node accounts for."""

    @property
    def value(self) -> Any:
        """What the trace has for it; a write changes neither sizes nor type."""
        return self.made.meta["val"]

    def set(self, node: Node) -> None:
        """Have the view's value after all writes so far in a node."""
        self.node, self.seen = node, self.root.writes

    def own(self) -> None:
        """Let the memory be the view's own: no other view of it is read any more."""
        self.parent, self.root = None, self
        self.writes = self.seen = 0


def viewed_operand(node: Node) -> Node | None:
    """The operand whose memory a node's result may share: that of views, and of parts of a list."""
    if node.op != "call_function":
        return None
    if node.target is not operator.getitem:
        schema = getattr(node.target, "_schema", None)
        if schema is None or all(argument.alias_info is None for argument in schema.arguments):
            return None
    source = node.args[0] if node.args else None
    return source if isinstance(source, Node) else None


def is_write(node: Node) -> bool:
    target: Any = node.target
    return isinstance(target, OpOverload) and cast(Any, target)._schema.is_mutable


def functional(op: OpOverload) -> OpOverload | None:
    """The op that returns what another writes into its first operand."""
    schema = cast(Any, op)._schema
    written = [argument for argument in schema.arguments if _writes(argument)]
    if not schema.name.endswith("_") or written != [schema.arguments[0]]:
        return None
    packet = getattr(getattr(torch.ops, op.namespace), schema.name.split("::")[1][:-1], None)
    overload = getattr(packet, schema.overload_name or "default", None)
    if overload is None or packet in _OTHER_MEMORY:
        return None
    # An op that gives a view changes in place what a tensor is a view of, and no memory.
    return None if any(a.alias_info is not None for a in overload._schema.arguments) else overload


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def can_repeat(view: View) -> bool:
    """Return whether a view is one of any tensor, not only of those in some order of memory."""
    target: Any = view.made.target
    if target is operator.getitem:
        return view.parent is not None and view.parent.made.target in PUT_ITEMS
    return target in PUTS or target in PUT_ITEMS or target is aten.expand.default


def _reshape(x: Tensor, part: Tensor, *_: Any, **__: Any) -> Tensor:
    return part.reshape(x.shape)


def _permute(x: Tensor, part: Tensor, dims: list[int]) -> Tensor:
    return part.permute([[d % x.ndim for d in dims].index(axis) for axis in range(x.ndim)])


def _transpose(x: Tensor, part: Tensor, *dims: int) -> Tensor:
    return part.transpose(*dims)


def _matrix_transpose(x: Tensor, part: Tensor) -> Tensor:
    return part.t()


PUTS: dict[Any, Callable[..., Tensor]] = {
    aten.slice.Tensor: aten.slice_scatter.default,
    aten.select.int: aten.select_scatter.default,
    aten.diagonal.default: aten.diagonal_scatter.default,
    aten.view.default: _reshape,
    aten.squeeze.default: _reshape,
    aten.squeeze.dim: _reshape,
    aten.squeeze.dims: _reshape,
    aten.unsqueeze.default: _reshape,
    aten.permute.default: _permute,
    aten.transpose.int: _transpose,
    aten.t.default: _matrix_transpose,
}
"""By the op of a view, the tensor that it is a view of, with another part in the view's place."""


def _put_piece(x: Tensor, part: Tensor, index: int, size: int, dim: int = 0) -> Tensor:
    return aten.slice_scatter.default(x, part, dim, index * size, (index + 1) * size)


def _put_sized_piece(x: Tensor, part: Tensor, index: int, sizes: list[int], dim: int = 0) -> Tensor:
    start = sum(sizes[:index])
    return aten.slice_scatter.default(x, part, dim, start, start + sizes[index])


def _put_row(x: Tensor, part: Tensor, index: int, dim: int = 0) -> Tensor:
    return aten.select_scatter.default(x, part, dim, index)


PUT_ITEMS: dict[Any, Callable[..., Tensor]] = {
    aten.split.Tensor: _put_piece,
    aten.split_with_sizes.default: _put_sized_piece,
    aten.unbind.int: _put_row,
}
"""The same for ops that give a list of views."""
