"""What calls become by a table of decompositions, traced once for all calls that are alike.

A call is traced by itself, on values of the sizes and types that it has in the graph. Sizes may be
symbols: the trace then reads them from its operands, so that it is right wherever operands have
the same symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves, tree_map_only

from fewbit.decompositions.views import View, is_write

Table = Mapping[Any, Callable[..., Any]]
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_COMPOSITE = cast(Any, torch)._C.DispatchKey.CompositeImplicitAutograd
_CHECKS = (
    torch.ops.aten._assert_tensor_metadata.default,
    torch.ops.aten._assert_scalar.default,
)
"""Ops that return nothing, and do nothing if all is well."""


class NeedsTraceError(Exception):
    """Something that cannot be rewritten by itself."""


class Expansions:
    """Graphs of calls, whose placeholders are the operands in the order of the arguments."""

    def __init__(self, table: Table, whole: frozenset[Any]) -> None:
        self.table = table
        self.whole = whole
        self.known: dict[Any, Graph] = {}

    def takes_apart(self, op: OpOverload) -> bool:
        return op in self.table or (op not in self.whole and _is_composite(op))

    def find(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Graph:
        """Return what a call becomes; operands among the arguments are views."""
        key = _key(function, args, kwargs)
        if key not in self.known:
            self.known[key] = self._trace(function, args, kwargs)
        return self.known[key]

    def _trace(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Graph:
        from torch._dispatch.python import enable_python_dispatcher

        operands = operands_of(args, kwargs)

        def call(*values: Any) -> Any:
            given = dict(zip(operands, values, strict=True))
            positional, named = tree_map_only(View, lambda each: given[each], (args, kwargs))
            return function(*positional, **named)

        values = _tell_apart([each.value for each in operands])
        with enable_python_dispatcher():
            graph = make_fx(call, decomposition_table=self.table)(*values).graph
        # Shapes of results are computed on the way.
        drop_unused(graph)
        # What a mask chooses is counted inside, though sizes of operands and results are known.
        known = symbols_of(values)
        if not all(is_plain(node, known) for node in graph.nodes):
            raise NeedsTraceError
        return graph


def drop_unused(graph: Graph) -> None:
    """Drop nodes that nothing reads, random numbers among them, which torch would keep."""

    def has_effect(node: Node) -> bool:
        return node.is_impure(impure_random=False)

    graph.eliminate_dead_code(has_effect)


def is_plain(node: Node, known: set[Any]) -> bool:
    """Return whether a node computes of sizes with these symbols, or writes, or checks."""
    value = node.meta.get("val")
    if node.op == "call_function":
        target = cast(Any, node.target)
        is_op = isinstance(target, OpOverload) or target is operator.getitem
        if not is_op and not isinstance(value, SYMBOLIC):
            return False
        if value is None and target not in _CHECKS and not is_write(node):
            return False
    elif node.op not in ("placeholder", "output"):
        return False
    return symbols_of(value) <= known


def _tell_apart(values: Sequence[Any]) -> list[Any]:
    """Values of which none is another: nodes of like expansions have the same, and a trace knows
    its operands by their values."""
    seen: set[int] = set()
    apart: list[Any] = []
    for value in values:
        is_known = id(value) in seen and isinstance(value, Tensor)
        seen.add(id(value))
        apart.append(value.detach() if is_known else value)
    return apart


def operands_of(args: Any, kwargs: Any) -> list[View]:
    return list(
        dict.fromkeys(leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, View))
    )


def _key(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    numbers = {each: i for i, each in enumerate(operands_of(args, kwargs))}
    types = tuple(_describe(each.value) for each in numbers)
    described = tree_map_only(View, lambda each: f"%{numbers[each]}", (args, kwargs))
    return function, repr(described), types


def _describe(value: Any) -> Any:
    if isinstance(value, Tensor):
        layout = (sizes_of(value.shape), sizes_of(value.stride()))
        return layout, value.dtype, value.requires_grad
    if isinstance(value, SYMBOLIC):
        return type(value), cast(Any, value).node.expr
    raise NeedsTraceError


def sizes_of(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes that can be compared without a guard."""
    return tuple(
        cast(Any, size).node.expr if isinstance(size, torch.SymInt) else size for size in sizes
    )


def symbols_of(values: Any) -> set[Any]:
    """The symbols in sizes, and in numbers that were computed from sizes."""
    symbols: set[Any] = set()
    for value in tree_leaves(values):
        numbers = value.shape if isinstance(value, Tensor) else (value,)
        for number in cast("Sequence[Any]", numbers):
            if isinstance(number, SYMBOLIC):
                symbols |= cast(Any, number).node.expr.free_symbols
    return symbols


def _is_composite(op: OpOverload) -> bool:
    return cast(Any, op).has_kernel_for_dispatch_key(_COMPOSITE)
