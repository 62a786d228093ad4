"""Layers that are single ops become subgraphs, where these are to be on a device of their own.

Only modules of several ops are subgraphs when a model is imported. Ops of one layer that follow one
another, constants aside, become one subgraph: such a run has a place for its call always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator, is_side_effect_free

from fewbit.dialects.graph import SubgraphOp
from fewbit.errors import UsageError
from fewbit.ir.layers import Layer, layer_name
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import Call
from fewbit.passes.graph.calls import Callable as Callee
from fewbit.passes.graph.outline_subgraph import MARK, OutlineSubgraph

Choice = Callable[[str], str | None]
"""The device that a name is given, if it is."""


def module_name(op: Operation) -> str | None:
    """Return the module of the model that an op is of; a call is its callee's own matter."""
    if isinstance(op, Call) or op.has_trait(IsTerminator, value_if_unregistered=False):
        return None
    known = layer_name(op) if isinstance(op, Layer) else None
    return known or place_of(op).layer


def outline_layers(ctx: Context, module: ModuleOp, choose: Choice, default: str) -> None:
    """Outline layers whose device differs from that around them; functions are on the default."""
    names = _Names(SymbolTable(module))
    for around in list(module.ops):
        if not isinstance(around, Callee) or around.body.first_block is not around.body.last_block:
            continue
        own = choose(around.sym_name.data) if isinstance(around, SubgraphOp) else None
        for name, device, ops in _runs(around.body.first_block, choose):
            if device != (own or default):
                mark = StringAttr(names.take(name))
                for op in ops:
                    op.attributes[MARK] = mark
    OutlineSubgraph().apply(ctx, module)


def _runs(body: Block | None, choose: Choice) -> Iterator[tuple[str, str, list[Operation]]]:
    """Yield the ops of each layer that has a device: its name, the device, and ops in a row."""
    name, device, ops = "", None, list[Operation]()
    for op in () if body is None else body.ops:
        if not op.operands and not op.regions and is_side_effect_free(op):
            continue
        own, chosen = _chosen(op, choose)
        if (own, chosen) != (name, device):
            if device is not None:
                yield name, device, ops
            name, device, ops = own, chosen, []
        ops.append(op)
    if device is not None:
        yield name, device, ops


def _chosen(op: Operation, choose: Choice) -> tuple[str, str | None]:
    """Return the name by which an op is given a device, and the device."""
    named = {name: choose(name) for name in _names_in(op)}
    chosen = {device: name for name, device in reversed(named.items()) if device is not None}
    if len(chosen) > 1:
        raise UsageError(
            f"ops of one '{op.name}' would be on several devices: {', '.join(sorted(chosen))}",
            place=place_of(op),
            hint="control flow stays on one device: place the whole of it there",
        )
    return next(((name, device) for device, name in chosen.items()), ("", None))


def _names_in(op: Operation) -> Iterable[str]:
    return dict.fromkeys(name for each in nested_ops(op) if (name := module_name(each)) is not None)


class _Names:
    """Symbols that are still free."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def take(self, name: str) -> str:
        free, number = name, 1
        while free in self._taken:
            number += 1
            free = f"{name}.{number}"
        self._taken.add(free)
        return free
