"""Split a placed program into parts: maximal pieces of one device, called one after another.

Subgraphs that are on several devices, themselves or by what they call, are inlined; those of one
device stay as they are. Then each op of the entry joins the earliest part of its device that runs
no sooner than what it reads, so two pieces of a device with nothing of another in between are one.
A part is a subgraph on its device, and all that the entry does is to call parts and to transfer
what passes between devices.

Constants, sizes, and what depends on these alone belong to no part: each part that uses them has
its own. State stays where it is updated: it is an input and an output of that part, behind all
others, without transfers. Control flow stays on one device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.cf import AssertOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from fewbit.dialects.graph import CallOp, SubgraphOp, TransferOp
from fewbit.errors import UnsupportedError, UsageError
from fewbit.ir.layers import Layer, layer_name
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable, using
from fewbit.ir.walk import walk
from fewbit.passes.graph.calls import Call, Callable, callee_of, is_effect_free
from fewbit.passes.graph.inline import callees_first, inline_calls
from fewbit.passes.graph.part import DEVICE, Part, Transfers, make_subgraph
from fewbit.passes.graph.rematerialize import Rematerialized, outside_operands, touches_tensors
from fewbit.pipeline.entry import entry_of
from fewbit.program.state import updated_inputs


@dataclass(frozen=True)
class SplitParts(ModulePass):
    """Split a program whose subgraphs are on devices into one subgraph for each part."""

    name = "split-parts"

    default: str = "cpu"
    """The device of functions, as in `place-devices`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entry = entry_of(op)
        walk(op, _remove, of=TransferOp)
        with using(SymbolTable(op)):
            devices = _Devices(op, self.default)
            mixed = {each for each, found in devices.found.items() if len(found) > 1}
            for each in mixed | {entry}:
                devices.mark(each)
        inline_calls(op, lambda _, callee: callee in mixed)
        with using(SymbolTable(op)):
            split = _Split(entry, devices)
            split.assign()
            split.collect_ports()
            split.write(op)


def _remove(transfer: TransferOp) -> None:
    transfer.result.replace_all_uses_with(transfer.source)
    assert transfer.parent is not None
    transfer.parent.erase_op(transfer)


class _Devices:
    """On which devices each subgraph and function is, with all that it calls."""

    def __init__(self, module: ModuleOp, default: str) -> None:
        self.default = default
        self.found: dict[Callable, set[str]] = {}
        self._remade = Rematerialized()
        for each in callees_first(module):
            body = each.body.first_block
            ops = () if body is None else body.ops
            found = {device for op in ops for device in self.of_op(op, self.home(each))}
            self.found[each] = found or (set() if body is None else {self.home(each)})

    def home(self, around: Callable) -> str:
        named = around.device_name if isinstance(around, SubgraphOp) else None
        return named or self.default

    def of_op(self, op: Operation, here: str) -> set[str]:
        """Return where an op computes: calls as their callees do, control flow as what is in it."""
        if isinstance(op, Call):
            callee = callee_of(op)
            return (self.found.get(callee) if callee is not None else None) or {here}
        if op.dialect_name() == scf.Scf.name:
            inner = (each for region in op.regions for block in region.blocks for each in block.ops)
            return {device for each in inner for device in self.of_op(each, here)}
        is_end = op.has_trait(IsTerminator, value_if_unregistered=False)
        return set() if is_end or not touches_tensors(op) or op in self._remade else {here}

    def mark(self, around: Callable) -> None:
        """Note the device of each op that is going to be the entry's."""
        here = self.home(around)
        for op in around.body.block.ops:
            if isinstance(op, Call) or op is around.body.block.last_op:
                continue
            devices = self.of_op(op, here) or {here}
            if len(devices) > 1:
                raise UsageError(
                    f"what is in one '{op.name}' is on {' and '.join(sorted(devices))}",
                    place=place_of(op),
                    hint="control flow stays on one device: place the whole of it there",
                )
            op.attributes[DEVICE] = StringAttr(next(iter(devices)))

    def of_marked(self, op: Operation) -> str:
        mark = op.attributes.get(DEVICE)
        if isinstance(mark, StringAttr):
            return mark.data
        return next(iter(self.of_op(op, self.default) or {self.default}))


@dataclass
class _Split:
    entry: FuncOp
    devices: _Devices
    parts: list[Part] = field(default_factory=list[Part])
    part_of: dict[Operation, int] = field(default_factory=dict[Operation, int])
    remade: set[Operation] = field(default_factory=set[Operation])
    """The ops of the entry that are of no part, because each part has its own."""
    owners: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The part that updates each state, by the argument that is its old value."""

    def __post_init__(self) -> None:
        self.block = self.entry.body.block
        assert self.block.last_op is not None
        self.end = self.block.last_op
        self.place = {op: i for i, op in enumerate(self.block.ops)}

    def assign(self) -> None:
        """Give each op that computes a part; what nothing reads is dropped."""
        for op in reversed(list(self.block.ops)[:-1]):
            if not any(result.uses for result in op.results) and is_effect_free(op):
                self.block.erase_op(op)
        returned = {value.owner for value in self.end.operands}
        remade, asserts, last_effect = Rematerialized(), list[AssertOp](), 0
        for op in list(self.block.ops)[:-1]:
            if isinstance(op, AssertOp):
                asserts.append(op)
            elif op in remade and op not in returned:
                self.remade.add(op)
            else:
                device, has_effects = self.devices.of_marked(op), not is_effect_free(op)
                first = max((self._soonest(each, device) for each in self._read(op)), default=0)
                number = self._find_part(device, max(first, last_effect if has_effects else 0))
                self._join(op, number)
                last_effect = number if has_effects else last_effect
        for op in asserts:
            number = max((self.part_of[each] for each in self._read(op)), default=0)
            self._join(op, number if self.parts else self._find_part(self.devices.default, 0))
        for part in self.parts:
            part.ops.sort(key=self.place.__getitem__)

    def _soonest(self, definition: Operation, device: str) -> int:
        """Return the first part that can read what an op gives."""
        number = self.part_of[definition]
        return number if self.parts[number].device == device else number + 1

    def _find_part(self, device: str, first: int) -> int:
        for number in range(first, len(self.parts)):
            if self.parts[number].device == device:
                return number
        self.parts.append(Part(device))
        return len(self.parts) - 1

    def _join(self, op: Operation, number: int) -> None:
        self.parts[number].ops.append(op)
        self.part_of[op] = number

    def _read(self, op: Operation) -> Iterator[Operation]:
        """Yield the ops of parts whose results an op needs."""
        return (v.owner for v in self._needs(op) if isinstance(v.owner, Operation))

    def _needs(self, op: Operation) -> Iterator[SSAValue]:
        """Yield what an op is computed from, by way of constants and sizes, too."""
        stack, seen = [op], {op}
        while stack:
            for value in outside_operands(stack.pop()):
                owner = value.owner
                if not isinstance(owner, Operation) or owner not in self.remade:
                    yield value
                elif owner not in seen:
                    seen.add(owner)
                    stack.append(owner)

    def collect_ports(self) -> None:
        """Find what each part takes and gives; state that it updates is behind all else."""
        for output, given in updated_inputs(self.entry).items():
            owner = self.end.operands[output].owner
            if isinstance(owner, Operation):
                self.owners[self.block.args[given]] = self.part_of[owner]
        given = {value for value in self.end.operands if isinstance(value.owner, Operation)}
        for number, part in enumerate(self.parts):
            outside = {
                value
                for op in part.ops
                for value in self._needs(op)
                if self._number_of(value) != number
            }
            given |= {value for value in outside if isinstance(value.owner, Operation)}
            part.inputs = sorted(
                (value for value in outside if self.owners.get(value) != number), key=self._order
            )
            part.inputs += sorted(outside - set(part.inputs), key=self._order)
        for value in sorted(given, key=self._order):
            self.parts[self.part_of[_definition(value)]].outputs.append(value)

    def _number_of(self, value: SSAValue) -> int | None:
        return self.part_of[value.owner] if isinstance(value.owner, Operation) else None

    def _order(self, value: SSAValue) -> tuple[int, int]:
        """Order arguments of the entry before results, and these by their places in the entry."""
        if isinstance(value, BlockArgument):
            return (-1, value.index)
        op = _definition(value)
        return (self.place[op], list(op.results).index(value))  # pyright: ignore[reportArgumentType]

    def write(self, module: ModuleOp) -> None:
        """Move parts into subgraphs, and have the entry call them."""
        values: dict[SSAValue, SSAValue] = {arg: arg for arg in self.block.args}
        homes = dict.fromkeys(values, self.devices.default)
        homes |= {state: self.parts[number].device for state, number in self.owners.items()}
        transfers, names = Transfers(self.block), _part_names(module, len(self.parts))
        bodies = [part.body(self.remade) for part in self.parts]
        for name, part, body in zip(names, self.parts, bodies, strict=True):
            subgraph = make_subgraph(name, part, body)
            module.body.block.insert_op_before(subgraph, self.entry)
            given = [transfers.to(part.device, values[v], homes[v]) for v in part.inputs]
            call = CallOp(name, given, subgraph.function_type.outputs.data)
            call.location = subgraph.location
            self.block.insert_op_before(call, self.end)
            for value, result in zip(part.outputs, call.results, strict=True):
                result.name_hint = _value_name(value)
                values[value], homes[value] = result, part.device
        self._return(values, homes, transfers)
        for op in sorted(self.remade, key=self.place.__getitem__, reverse=True):
            self.block.erase_op(op)

    def _return(
        self,
        values: Mapping[SSAValue, SSAValue],
        homes: Mapping[SSAValue, str],
        transfers: Transfers,
    ) -> None:
        """Return results from the default device, and state from where it stays."""
        states = updated_inputs(self.entry)
        for i, value in enumerate(self.end.operands):
            given, home = values[value], homes[value]
            if given.type != value.type:
                raise UnsupportedError(
                    f"output {i} is a number and no tensor, which no part gives",
                    place=place_of(_definition(value)),
                )
            if i not in states:
                self.end.operands[i] = transfers.to(self.devices.default, given, home)
            else:
                self.end.operands[i] = given


def _definition(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _part_names(module: ModuleOp, count: int) -> list[str]:
    taken, prefix = set(SymbolTable(module)), "part"
    while any(f"{prefix}{i}" in taken for i in range(count)):
        prefix += "_"
    return [f"{prefix}{i}" for i in range(count)]


def _value_name(value: SSAValue) -> str | None:
    """Return what a value is called outside of its part: as the module that gives it."""
    op = _definition(value)
    if isinstance(op, CallOp):
        name = op.callee.root_reference.data
        return name if len(op.results) == 1 else f"{name}.{value.name_hint or 'result'}"
    return (layer_name(op) if isinstance(op, Layer) else value.name_hint) or place_of(op).layer
