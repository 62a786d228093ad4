"""Place subgraphs on devices by name, and make every transfer between devices explicit.

A rule is `pattern=device`; the first rule that selects a name decides, as the first pattern does in
a recipe, so rules go from the particular to the general. A rule may also name a layer that is an op
and no subgraph: where its device is another than that around it, it becomes a subgraph. Subgraphs
that no rule selects keep their device, or get the default, which is also where functions run.

A value lives where it was computed: in a body on the body's device, the result of a call on the
callee's. Wherever it is used on another device, one `graph.transfer` right after its definition
serves all uses there. Transfers that were there before are made anew, so the pass may run again
with other rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects.graph import (
    DEVICE_NAME,
    SubgraphOp,
    TransferOp,
)
from fewbit.errors import Place, UsageError
from fewbit.ir.symbols import SymbolTable, using
from fewbit.ir.walk import nested_ops, walk
from fewbit.passes.graph.calls import Call, callable_around, callee_of
from fewbit.passes.graph.names import NamePattern
from fewbit.passes.graph.outline_layers import module_name, outline_layers

ROOT = "model"
"""Names of imported subgraphs begin with this; as in a recipe, it may be left out of a rule."""


@dataclass(frozen=True)
class PlaceDevices(ModulePass):
    """Place subgraphs on devices by name, with explicit transfers between devices."""

    name = "place-devices"

    rules: tuple[str, ...] = ()
    """`name=device` or `re:regular expression=device`."""
    default: str = "cpu"
    """The device of functions, and of subgraphs that nothing else places."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _require_device(self.default, f"the option default='{self.default}'")
        placement = Placement(self.rules)
        placement.require_matches(op)
        subgraphs = _subgraphs(op)

        def choose(name: str) -> str | None:
            kept = subgraphs[name].device_name if name in subgraphs else None
            return placement.device_of(name) or kept

        if self.rules:
            outline_layers(ctx, op, choose, self.default)
        for name, subgraph in _subgraphs(op).items():
            device = placement.device_of(name) or subgraph.device_name or self.default
            subgraph.device = StringAttr(device)
        walk(op, _remove, of=TransferOp)
        with using(SymbolTable(op)):
            _Transfers(self.default).insert(op)


class Placement:
    """Rules in their order."""

    def __init__(self, rules: Sequence[str]) -> None:
        self.rules = [_parse_rule(text) for text in rules]

    def device_of(self, name: str) -> str | None:
        """Return the device that the first rule which selects a module says."""
        return next((device for pattern, device in self.rules if _selects(pattern, name)), None)

    def require_matches(self, module: ModuleOp) -> None:
        """Refuse a rule that selects nothing."""
        names = dict.fromkeys(_subgraphs(module))
        names |= dict.fromkeys(n for op in nested_ops(module) if (n := module_name(op)) is not None)
        for pattern, _ in self.rules:
            if not any(_selects(pattern, name) for name in names):
                pattern.require_match(names, PlaceDevices.name)


def _subgraphs(module: ModuleOp) -> dict[str, SubgraphOp]:
    return {op.sym_name.data: op for op in nested_ops(module) if isinstance(op, SubgraphOp)}


def _selects(pattern: NamePattern, name: str) -> bool:
    own = name.removeprefix(f"{ROOT}.")
    return any(map(pattern.selects, (name, own, f"{ROOT}.{own}")))


def _parse_rule(text: str) -> tuple[NamePattern, str]:
    pattern, equals, device = text.rpartition("=")
    if not equals or not device:
        raise UsageError(
            f"'{text}' is not a placement rule",
            place=Place(stage=PlaceDevices.name),
            hint="write pattern=device, as in model.layers.0=npu or re:.*attn.*=gpu:1",
        )
    _require_device(device, f"the rule '{text}'")
    return NamePattern.parse(pattern), device


def _require_device(device: str, source: str) -> None:
    if DEVICE_NAME.fullmatch(device):
        return
    raise UsageError(
        f"'{device}' is not a device name, in {source}",
        place=Place(stage=PlaceDevices.name),
        hint="names are such as cpu, npu or gpu:1",
    )


def _remove(transfer: TransferOp) -> None:
    transfer.result.replace_all_uses_with(transfer.source)
    assert transfer.parent is not None
    transfer.parent.erase_op(transfer)


@dataclass
class _Transfers:
    default: str
    transfers: dict[tuple[SSAValue, str], TransferOp] = field(
        default_factory=dict[tuple[SSAValue, str], TransferOp]
    )
    last_after: dict[Operation | Block, Operation] = field(
        default_factory=dict[Operation | Block, Operation]
    )
    """By definition, the last transfer behind it, so that transfers stand in order of use."""

    def insert(self, module: ModuleOp) -> None:
        for user in list(nested_ops(module)):
            here = self._device_of(user)
            for index, value in enumerate(user.operands):
                home = self._home(value)
                if home != here:
                    user.operands[index] = self._transfer(value, home, here, user)

    def _transfer(self, value: SSAValue, home: str, here: str, user: Operation) -> SSAValue:
        known = self.transfers.get((value, here))
        if known is not None:
            return known.result
        transfer = TransferOp(value, home, here)
        transfer.location = user.location
        transfer.result.name_hint = value.name_hint
        self._insert_after(transfer, value.owner)
        self.transfers[value, here] = transfer
        return transfer.result

    def _insert_after(self, transfer: TransferOp, definition: Operation | Block) -> None:
        before = self.last_after.get(definition, definition)
        self.last_after[definition] = transfer
        if isinstance(before, Operation):
            assert before.parent is not None
            before.parent.insert_op_after(transfer, before)
            return
        assert before.first_op is not None
        before.insert_op_before(transfer, before.first_op)

    def _home(self, value: SSAValue) -> str:
        """Return the device on which a value was computed."""
        if isinstance(value, OpResult):
            return self._device_of(value.op)
        assert isinstance(value.owner, Block)
        parent = value.owner.parent_op()
        assert parent is not None
        if isinstance(parent, SubgraphOp):
            return parent.device_name or self.default
        return self._device_of(parent)

    def _device_of(self, op: Operation) -> str:
        """Return the device on which an op computes: a call's is that of its callee."""
        place = callee_of(op) if isinstance(op, Call) else None
        if place is None or (isinstance(place, FuncOp) and place.is_declaration):
            place = callable_around(op)
        if isinstance(place, SubgraphOp):
            return place.device_name or self.default
        return self.default
