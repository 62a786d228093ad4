"""Move sets of ops into subgraphs of their own, each replaced by a call.

Ops are chosen by the module path in their location (`scopes`), or by an attribute
`graph.outline = "name"` on them. A set need not be contiguous, only convex: ops between its members
that need its results move behind the call, others stay before it, and if one of the set needs
what such an op computes there is no place for the call, which is an error. Values that the set
uses become arguments and values that are used outside results; constants are copied in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator, is_side_effect_free

from fewbit.dialects.graph import CallOp, ReturnOp, SubgraphOp
from fewbit.errors import PassError
from fewbit.ir.locations import named_location, place_of
from fewbit.ir.symbols import SymbolTable
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import callable_around, is_effect_free
from fewbit.passes.graph.names import NamePattern

MARK = "graph.outline"


@dataclass(frozen=True)
class OutlineSubgraph(ModulePass):
    """Move ops, chosen by module path or by an attribute, into subgraphs."""

    name = "outline-subgraph"

    scopes: tuple[str, ...] = ()
    """Module paths, or patterns of them after `re:`; each module becomes a subgraph."""
    pass_constants: bool = False
    """Make constants arguments like other values, in place of copying them in."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self._outline_all(op, _groups_by_mark(op))
        for text in self.scopes:
            pattern = NamePattern.parse(text)
            pattern.require_match(_layers(op), self.name)
            self._outline_all(op, _groups_by_scope(op, pattern))

    def _outline_all(self, module: ModuleOp, groups: dict[str, list[Operation]]) -> None:
        table = SymbolTable(module)
        for name, ops in groups.items():
            if name in table:
                raise PassError(
                    f"cannot outline @{name}: the module defines it already",
                    place=place_of(ops[0], self.name),
                    hint=f"the other one is {place_of(table[name])}",
                )
            _Cut.of(name, ops).outline(self.pass_constants)


def _groups_by_mark(module: ModuleOp) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for op in nested_ops(module):
        mark = op.attributes.pop(MARK, None)
        if mark is None:
            continue
        if not isinstance(mark, StringAttr):
            raise PassError(
                f"{MARK} = {mark} is not a name",
                place=place_of(op, OutlineSubgraph.name),
                hint=f'write {MARK} = "model.layers.0"',
            )
        groups.setdefault(mark.data, []).append(op)
    return {name: _outermost(ops) for name, ops in groups.items()}


def _layers(module: ModuleOp) -> Iterator[str]:
    return (layer for op in nested_ops(module) if (layer := place_of(op).layer) is not None)


def _groups_by_scope(module: ModuleOp, pattern: NamePattern) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for op in nested_ops(module):
        layer = place_of(op).layer
        scope = pattern.scope(layer) if layer is not None else None
        if scope is not None and not _is_outlined(op, scope, pattern):
            groups.setdefault(scope, []).append(op)
    return {name: _outermost(ops) for name, ops in groups.items()}


def _is_outlined(op: Operation, scope: str, pattern: NamePattern) -> bool:
    """Return whether `op` is in that scope's subgraph or calls it, or cannot be outlined."""
    around = callable_around(op)
    if around is None or op.has_trait(IsTerminator, value_if_unregistered=False):
        return True
    if isinstance(op, CallOp) and op.callee.root_reference.data == scope:
        return True
    return pattern.scope(around.sym_name.data) == scope


def _outermost(ops: list[Operation]) -> list[Operation]:
    """Return the ops that are not nested in others of the list."""
    group = set(ops)
    return [op for op in ops if not any(parent in group for parent in _parents(op))]


def _parents(op: Operation) -> Iterator[Operation]:
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


@dataclass
class _Cut:
    """A convex set of ops in a block, and the ops between them that need its results."""

    name: str
    block: Block
    inside: list[Operation]
    behind: list[Operation]

    @staticmethod
    def of(name: str, ops: list[Operation]) -> _Cut:
        block = ops[0].parent
        for op in ops:
            if op.parent is not block or block is None or callable_around(op) is None:
                raise _refusal(name, op, "not all of its ops stand in one block of a function")
            if op.has_trait(IsTerminator, value_if_unregistered=False):
                raise _refusal(name, op, "a terminator cannot be moved")
        assert block is not None
        behind: list[Operation] = []
        before: list[Operation] = []
        late: set[Operation] = set()
        inside = set(ops)
        for op in _ops_between(ops[0], ops[-1]):
            if op in inside:
                _require_none_of(late, op, name)
            elif any(d in late or d in inside for d in _definitions(op)):
                behind.append(op)
                late.add(op)
            else:
                before.append(op)
        if (behind or before) and _count_with_effects(ops, behind, before) > 1:
            raise _refusal(name, ops[0], "ops with effects stand between its ops")
        return _Cut(name, block, ops, behind)

    def outline(self, pass_constants: bool) -> None:
        first, last = self.inside[0], self.inside[-1]
        around = callable_around(first)
        anchor = last.next_op
        assert around is not None
        assert anchor is not None
        arguments, constants = self._live_in(pass_constants)
        results = self._live_out()
        body = self._move_into(Block(arg_types=[v.type for v in arguments]), arguments, constants)
        body.add_op(ReturnOp(*results))
        device = around.device_name if isinstance(around, SubgraphOp) else None
        types = ([v.type for v in arguments], [v.type for v in results])
        subgraph = SubgraphOp(self.name, types, Region(body), device)
        call = CallOp(self.name, arguments, types[1])
        inner = first.location
        subgraph.location = call.location = (
            inner if place_of(first).layer == self.name else named_location(self.name, inner)
        )

        self.block.insert_op_before(call, anchor)
        for op in self.behind:
            op.detach()
            self.block.insert_op_before(op, anchor)
        for old, new in zip(results, call.results, strict=True):
            old.replace_uses_with_if(new, lambda use: not body.is_ancestor(use.operation))
            new.name_hint = old.name_hint
        assert around.parent is not None
        around.parent.insert_op_before(subgraph, around)
        for constant in constants:
            if all(result.first_use is None for result in constant.results):
                assert constant.parent is not None
                constant.parent.erase_op(constant)

    def _live_in(self, pass_constants: bool) -> tuple[list[SSAValue], list[Operation]]:
        """Return values from outside in order of use, and the constants among them by their ops."""
        inside = set(self.inside)
        values = dict.fromkeys(
            value
            for op in self.inside
            for user in nested_ops(op)
            for value in user.operands
            if not _is_defined_in(value, inside)
        )
        if pass_constants:
            return list(values), []
        constants = dict.fromkeys(
            owner for v in values if isinstance(owner := v.owner, Operation) and _is_constant(owner)
        )
        return [v for v in values if v.owner not in constants], list(constants)

    def _live_out(self) -> list[SSAValue]:
        inside = set(self.inside)
        return [
            result
            for op in self.inside
            for result in op.results
            if any(
                self.block.find_ancestor_op_in_block(u.operation) not in inside for u in result.uses
            )
        ]

    def _move_into(
        self, body: Block, arguments: list[SSAValue], constants: list[Operation]
    ) -> Block:
        inner: dict[SSAValue, SSAValue] = dict(zip(arguments, body.args, strict=True))
        for constant in constants:
            body.add_op(constant.clone(inner))
        for outer, argument in zip(arguments, body.args, strict=True):
            argument.name_hint = outer.name_hint
        for op in self.inside:
            op.detach()
            body.add_op(op)
            for user in nested_ops(op):
                user.operands = [inner.get(value, value) for value in user.operands]
        return body


def _ops_between(first: Operation, last: Operation) -> Iterator[Operation]:
    op: Operation | None = first
    while op is not None:
        yield op
        op = None if op is last else op.next_op


def _definitions(op: Operation) -> Iterator[Operation]:
    """Yield the ops whose results `op` uses, itself or in its regions."""
    for user in nested_ops(op):
        for value in user.operands:
            if isinstance(value.owner, Operation):
                yield value.owner


def _require_none_of(late: Iterable[Operation], op: Operation, name: str) -> None:
    for definition in _definitions(op):
        if definition in late:
            raise _refusal(
                name,
                definition,
                f"'{op.name}' in it uses what this op computes from its results",
            )


def _is_defined_in(value: SSAValue, group: set[Operation]) -> bool:
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    return op is not None and (op in group or any(parent in group for parent in _parents(op)))


def _count_with_effects(*parts: list[Operation]) -> int:
    return sum(any(not is_effect_free(op) for op in part) for part in parts)


def _is_constant(op: Operation) -> bool:
    return not op.operands and not op.regions and is_side_effect_free(op)


def _refusal(name: str, op: Operation, why: str) -> PassError:
    return PassError(
        f"cannot outline @{name}: {why}",
        place=place_of(op, OutlineSubgraph.name),
        hint="choose a set of ops that no path leaves and enters again",
    )
