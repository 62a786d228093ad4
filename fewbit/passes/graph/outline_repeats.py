"""Parts of a program that repeat become one function, which is called for each of them.

The layers of a transformer are the same ops with other weights. Found are they by what the entry
does, not by names: the longest runs of ops that are equal but for the constants that they read. A
part is lowered, planned and compiled once, as a function with arguments for what differs from call
to call, and reads the constants of the first call; a call says which it reads in their place:

    func.func private @program.repeated_0(%x: tensor<1x64xf32>) -> tensor<1x64xf32>
        attributes {fewbit.repeated = 3, fewbit.constants = ["l0.weight"]} {
      %w = mico.get_constant @l0.weight : tensor<64x64xf32>
      ...
    }
    %a = func.call @program.repeated_0(%x) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    %b = func.call @program.repeated_0(%a) {fewbit.constants = [@l1.weight]} : ...

A program must not become slower, and its results keep their bits. So the pass runs when layers have
been fused, and parts begin only where a tensor is in memory anyway: what one call hands to the next
is the result of a contraction, or state that is updated in place, and nothing that a later pass
would look for behind an argument (a fill, a constant, what was widened) is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.dialects import kernel
from fewbit.dialects.mico import (
    ConstantOp,
    GetConstantOp,
    LayerNormOp,
    PackedAttr,
    RmsNormOp,
    shape_of,
)
from fewbit.passes.graph.find_repeats import Repeat, find_repeats
from fewbit.passes.graph.op_forms import FormTable, is_leaf
from fewbit.passes.kernel.call_quantize_rows import finds_largest
from fewbit.passes.kernel.unsigned import is_unsigned
from fewbit.pipeline.context import compile_context
from fewbit.pipeline.entry import entry_of
from fewbit.program.repeats import CONSTANTS, REPEATED, mark_results, repeated_name
from fewbit.program.state import updated_inputs

LEAST = 3
"""How often a part has to be there."""
SMALL = 1024
"""Elements of a constant that each call may have of its own."""
TRIES = 8
"""Places of repetition that are looked at before the program is left as it is."""
COPIED = (tensor.EmptyOp, tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.DimOp, linalg.FillOp)
"""Ops that cost nothing, and which later passes want to see: each function has its own."""


@dataclass(frozen=True)
class OutlineRepeats(ModulePass):
    """Make functions of the parts of the entry that repeat, but for constants."""

    name = "outline-repeats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # What passes derive from now on is derived anew for each call; this is what they are given.
        compile_context(ctx).store.forget_derivations()
        number = 0
        while outline_next(op, repeated_name(number)):
            number += 1


def outline_next(module: ModuleOp, name: str) -> bool:
    """Make a function of what repeats most; return whether there is something."""
    entry = entry_of(module)
    block = entry.body.block
    ops = [op for op in block.ops if not is_leaf(op) and op is not block.last_op]
    forms = FormTable()
    items = [forms.number(op) for op in ops]
    constants = {c.sym_name.data: c for c in module.body.block.ops if isinstance(c, ConstantOp)}
    for repeat in find_repeats(items, LEAST)[:TRIES]:
        for start, count in _starts(repeat):
            parts = [ops[i : i + repeat.period] for i in _steps(start, repeat.period, count)]
            shared = _Shared(entry, parts, forms, constants)
            if shared.is_callable():
                _outline(module, shared, name)
                return True
    return False


def _steps(start: int, period: int, count: int) -> range:
    return range(start, start + period * count, period)


def _starts(repeat: Repeat) -> Iterator[tuple[int, int]]:
    """Yield where parts may begin, and how many there are then: as many as can be first."""
    for late in range(repeat.period):
        if late <= repeat.spare:
            yield repeat.start + late, repeat.count
    for late in range(repeat.period):
        count = repeat.count if late <= repeat.spare else repeat.count - 1
        if count > LEAST:
            # The first and the last may have a neighbour that the others have not.
            yield repeat.start + late + repeat.period, count - 1
            yield repeat.start + late, count - 1
        if late > repeat.spare and count >= LEAST:
            yield repeat.start + late, count


@dataclass
class _Shared:
    """Equal parts of the entry, and what a function that stands for all of them would take."""

    entry: func.FuncOp
    parts: Sequence[Sequence[Operation]]
    forms: FormTable
    constants: dict[str, ConstantOp]
    part_of: dict[Operation, int] = field(init=False)
    inner: list[dict[SSAValue, tuple[int, int]]] = field(init=False)
    """Where values of each part are computed."""
    arguments: dict[SSAValue, tuple[SSAValue, ...]] = field(init=False)
    """What each call is given, by what the first is given."""
    copied: dict[SSAValue, None] = field(init=False)
    """What the function has of its own, of what the first part reads."""
    reads: dict[str, tuple[str, ...]] = field(init=False)
    """The constants of each call, by those of the first."""
    results: list[tuple[int, int]] = field(init=False)
    """What others read."""
    updates: dict[int, int] = field(init=False)
    """Results that are new values of arguments, by their numbers."""
    like: dict[int, int] = field(init=False)
    """Arguments whose sizes results have, by the numbers of both."""

    def is_callable(self) -> bool:
        """Return whether one function can stand for all parts; find out what it takes."""
        first = self.parts[0]
        if not any(isinstance(op, kernel.ContractionOp) for op in first):
            return False
        if any(isinstance(op, func.CallOp) for op in first):
            return False
        self.part_of = {op: number for number, part in enumerate(self.parts) for op in part}
        self.inner = [
            {result: (i, n) for i, op in enumerate(part) for n, result in enumerate(op.results)}
            for part in self.parts
        ]
        self.arguments, self.copied, self.reads = {}, {}, {}
        for same in zip(*self.parts, strict=True):
            for values in zip(*map(self.forms.outside, same), strict=True):
                if not self._take(values):
                    return False
        return self._are_weights_own() and self._gives_results()

    def _are_weights_own(self) -> bool:
        """Return whether parts share no large weights, which each call would have of its own.

        Where they share all of them, there is one copy.
        """
        shared = [self.constants[old] for old, *others in self.reads.values() if {old} == {*others}]
        is_all = len(shared) == len(self.reads)
        return is_all or all(prod(shape_of(each.type)) <= SMALL for each in shared)

    def _take(self, values: tuple[SSAValue, ...]) -> bool:
        """Note what an operand is in each part; return whether a function can have it."""
        places = [inner.get(value) for inner, value in zip(self.inner, values, strict=True)]
        if any(place is not None for place in places):
            return places.count(places[0]) == len(places)
        first = values[0]
        if self.arguments.get(first, values) != values:
            return False
        if first in self.arguments or (first in self.copied and not is_leaf(first.owner)):
            return True
        if isinstance(first.owner, arith.ConstantOp):
            self.copied[first] = None
            return True
        if isinstance(first.owner, GetConstantOp):
            return self._take_constants([cast(GetConstantOp, v.owner) for v in values])
        if isinstance(first.owner, COPIED) and values.count(first) == len(values):
            operands = [(operand,) * len(values) for operand in first.owner.operands]
            if not all(map(self._take, operands)):
                return False
            self.copied[first] = None
            return True
        self.arguments[first] = values
        return self._is_argument(values)

    def _take_constants(self, reads: Sequence[GetConstantOp]) -> bool:
        names = tuple(read.symbol.root_reference.data for read in reads)
        self.copied[reads[0].result] = None
        is_packed = any(isinstance(self.constants[name].value, PackedAttr) for name in names)
        return not is_packed and self.reads.setdefault(names[0], names) == names

    def _is_argument(self, values: tuple[SSAValue, ...]) -> bool:
        """Return whether it may be an argument: the same in all calls, or handed on, or static."""
        if is_unsigned(values[0]) or is_unsigned(values[-1]):
            return False
        if values.count(values[0]) == len(values):
            return True
        if not isa(values[0].type, TensorType[Attribute]):
            return False
        before = [inner.get(value) for inner, value in zip(self.inner, values[1:], strict=False)]
        if None not in before:
            return before.count(before[0]) == len(before)
        return DYNAMIC_INDEX not in shape_of(values[0].type)

    def _gives_results(self) -> bool:
        """Find out what others read of each part; return whether a call can give it."""
        needed = {
            place
            for number, inner in enumerate(self.inner)
            for value, place in inner.items()
            if not all(self._is_within(use.operation, number) for use in value.uses)
        }
        self.results, self.updates, self.like = sorted(needed), {}, {}
        return all(map(self._is_result, range(len(self.results))))

    def _is_result(self, number: int) -> bool:
        values = [self.result(part, number) for part in self.parts]
        argument = self._updated(values)
        if argument is not None:
            self.updates[number] = self.like[number] = argument
            return True
        if any(_is_looked_through(value) for value in values):
            return False
        sizes = shape_of(values[0].type)
        if DYNAMIC_INDEX not in sizes:
            return True
        for given, first in enumerate(self.arguments):
            alike = first.type == values[0].type and all(
                self._source(values[0], axis) == (first, axis)
                for axis, size in enumerate(sizes)
                if size == DYNAMIC_INDEX
            )
            if alike:
                self.like[number] = given
                return True
        return False

    def _updated(self, values: Sequence[SSAValue]) -> int | None:
        """Return the argument that is state which results are the new values of."""
        end = self.entry.body.block.last_op
        assert end is not None
        state = updated_inputs(self.entry)
        for number, given in enumerate(self.arguments.values()):
            pairs = enumerate(zip(given, values, strict=True))
            if all(self._is_update(old, new, part, end, state) for part, (old, new) in pairs):
                return number
        return None

    def _is_update(
        self,
        old: SSAValue,
        new: SSAValue,
        part: int,
        end: Operation,
        state: dict[int, int],
    ) -> bool:
        """Return whether only this part reads state, and only the caller its new value."""
        outputs = [i for i, value in enumerate(end.operands) if value is new]
        if len(outputs) != 1 or outputs[0] not in state:
            return False
        if self.entry.body.block.args[state[outputs[0]]] is not old:
            return False
        readers = [use.operation for use in (*old.uses, *new.uses) if use.operation is not end]
        return all(self._is_within(op, part) for op in readers)

    def _source(self, value: SSAValue, axis: int) -> tuple[SSAValue, int] | None:
        """Return the argument, and its dimension, that a dimension of the first part's has."""
        place = self.inner[0].get(value)
        if place is None:
            return value, axis
        op = self.parts[0][place[0]]
        if isinstance(op, LayerNormOp | RmsNormOp):
            return self._source(op.operands[0], axis)
        if not isinstance(op, kernel.MatmulOp) or axis == len(shape_of(value.type)) - 1:
            return None
        return self._source(op.x if op.add is None else op.add, axis)

    def _is_within(self, op: Operation, part: int) -> bool:
        """Return whether an op is in a part, or in an op of it."""
        above: Operation | None = op
        while above is not None and above.parent_block() is not self.entry.body.block:
            above = above.parent_op()
        return above is not None and self.part_of.get(above) == part

    def result(self, part: Sequence[Operation], number: int) -> SSAValue:
        op, result = self.results[number]
        return part[op].results[result]


def _is_looked_through(value: SSAValue) -> bool:
    """Return whether a later pass would do better if it saw how a tensor is made, or read."""
    if not isinstance(value.owner, kernel.ContractionOp) or is_unsigned(value):
        return True
    if value is not value.owner.result:
        return True
    users = [use.operation for use in value.uses]
    return any(isinstance(op, kernel.QuantizeRowsOp) and finds_largest(op) for op in users)


def _outline(module: ModuleOp, shared: _Shared, name: str) -> None:
    """Write the function, and calls of it in place of all parts."""
    function = _function(shared, name)
    Rewriter.insert_op(function, InsertPoint.after(shared.entry))
    replaced: dict[SSAValue, SSAValue] = {}
    for number, part in enumerate(shared.parts):
        operands = [values[number] for values in shared.arguments.values()]
        given = [replaced.get(value, value) for value in operands]
        call = func.CallOp(name, given, function.function_type.outputs.data)
        call.location = part[0].location
        if number:
            names = [SymbolRefAttr(names[number]) for names in shared.reads.values()]
            call.attributes[CONSTANTS] = ArrayAttr(names)
        Rewriter.insert_op(call, InsertPoint.before(part[0]))
        for i, new in enumerate(call.results):
            old = shared.result(part, i)
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
            replaced[old] = new
    for part in reversed(shared.parts):
        for op in reversed(part):
            Rewriter.erase_op(op)
    _sweep(shared.entry)


def _function(shared: _Shared, name: str) -> func.FuncOp:
    first = shared.parts[0]
    body = Block(arg_types=[value.type for value in shared.arguments])
    values: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(shared.arguments, body.args, strict=True):
        argument.name_hint = value.name_hint
        values[value] = argument
    owners = dict.fromkeys(cast(Operation, value.owner) for value in shared.copied)
    for op in (*owners, *first):
        copy = op.clone(values)
        body.add_op(copy)
    results = [values[shared.result(first, i)] for i in range(len(shared.results))]
    end = func.ReturnOp(*results)
    end.location = first[-1].location
    body.add_op(end)
    types = ([a.type for a in body.args], [r.type for r in results])
    function = func.FuncOp(name, types, Region(body), visibility="private")
    function.location = first[0].location
    function.attributes[REPEATED] = IntegerAttr(len(shared.parts), i64)
    function.attributes[CONSTANTS] = ArrayAttr([StringAttr(name) for name in shared.reads])
    mark_results(function, shared.updates, shared.like)
    return function


def _sweep(entry: func.FuncOp) -> None:
    """Drop constants and the like that only the parts read."""
    for op in reversed(list(entry.body.block.ops)):
        if (is_leaf(op) or isinstance(op, COPIED)) and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)
