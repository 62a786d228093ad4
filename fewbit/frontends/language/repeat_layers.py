"""A program with one layer of each kind becomes one with all layers.

Tracing and lowering take the same time for each layer, and layers differ in nothing but their
weights, so a model is traced with one layer of each kind. Here the subgraphs of these are copied
under the names and with the weights of all others, and called one after another. The result is the
program that tracing all layers gives; tests compare the two.

A layer is called with the hidden state first, gives it last, and takes and gives what it keeps from
call to call in between, if there is something. That passes through all subgraphs around the layers,
whose arguments and results are therefore repeated, too: `_Keys` says which of them are whose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from fewbit.base.progress import progress
from fewbit.dialects.graph import CallOp, SubgraphOp
from fewbit.dialects.mico import ConstantOp, GetConstantOp, RefAttr
from fewbit.ir.layers import REGISTERED, registered_layers
from fewbit.program.program import Program
from fewbit.program.state import Updates, mark_updates, updates_of
from fewbit.program.store import WeightStore

ROOT = "model"
"""What the names of all subgraphs begin with, before the path of a module."""
Op = TypeVar("Op", bound=Operation)


class _Key(NamedTuple):
    """Something of a layer: the layer's number, and the name in it."""

    layer: int
    name: str


_Keys = Mapping[int, _Key]
"""What belongs to layers in a list of arguments or results, by its number there."""


def repeat_layers(
    program: Program, prefix: str, kinds: Sequence[int], weights: WeightStore
) -> Program:
    """Return a program with as many layers as `kinds`, each like the given one of that number.

    Layers are under `prefix` and a number. The program is changed in place; weights of all layers
    are taken from the store.
    """
    return _Repetition(program, prefix, kinds, weights).run()


class _Repetition:
    def __init__(
        self, program: Program, prefix: str, kinds: Sequence[int], weights: WeightStore
    ) -> None:
        self.module, self.store, self.weights = program.module, program.store, weights
        self.prefix, self.kinds = prefix, kinds
        self.pattern = re.compile(rf"((?:{ROOT}\.)?{re.escape(prefix)}\.)(\d+)(.*)")
        self.symbols = {
            op.sym_name.data: op
            for op in self.module.body.block.ops
            if isinstance(op, SubgraphOp | FuncOp)
        }
        self.rename_location = cache(self._rename_location)
        self.has_layers = cache(self._has_layers)

    def run(self) -> Program:
        main = self.symbols["main"]
        assert isinstance(main, FuncOp)
        updates, ports = updates_of(main), main.function_type
        inputs = {given: self._key(start) for given, start in updates.values()}
        outputs = {output: self._key(start) for output, (_, start) in updates.items()}
        self._widen(main, inputs, outputs)
        mark_updates(main, self._repeat_updates(updates, len(ports.inputs), len(ports.outputs)))
        self._repeat_names()
        return self._with_weights()

    def _has_layers(self, name: str) -> bool:
        """Return whether a subgraph is a layer, or calls layers."""
        if self.pattern.fullmatch(name):
            return True
        ops = self.symbols[name].body.block.ops
        return any(isinstance(op, CallOp) and self.has_layers(_callee(op)) for op in ops)

    def _repeat_names(self) -> None:
        """List the layers that a recipe can name."""
        names = registered_layers(self.module)
        places = self._places(len(names), self._keys(names))
        repeated = [StringAttr(self._rename(names[i], layer)) for i, layer in places]
        self.module.attributes[REGISTERED] = ArrayAttr(repeated)

    def _key(self, name: str) -> _Key:
        match = self.pattern.fullmatch(name)
        assert match is not None, f"{name} is of no layer"
        return _Key(int(match[2]), match[3])

    def _keys(self, names: Sequence[str]) -> _Keys:
        return {i: self._key(n) for i, n in enumerate(names) if self.pattern.fullmatch(n)}

    def _rename(self, name: str, layer: int | None) -> str:
        match = self.pattern.fullmatch(name)
        return name if match is None or layer is None else f"{match[1]}{layer}{match[3]}"

    def _places(self, count: int, keys: _Keys) -> Iterator[tuple[int, int | None]]:
        """Yield the numbers of items in their new order, each with its layer if it is of one.

        What is of layers and side by side is repeated together, layer after layer.
        """
        number = 0
        while number < count:
            start = number
            while number in keys:
                number += 1
            for layer, kind in enumerate(self.kinds):
                alike = [i for i in range(start, number) if keys[i].layer == kind]
                yield from ((i, layer) for i in alike)
            if number < count and number not in keys:
                yield number, None
                number += 1

    def _widen(self, op: FuncOp | SubgraphOp, inputs: _Keys, outputs: _Keys) -> None:
        """Have a function take and give what all layers keep, and so all that it calls."""
        block = op.body.block
        old = list(block.args)
        kept: dict[_Key, SSAValue] = {}
        for number, layer in self._places(len(old), inputs):
            argument = block.insert_arg(old[number].type, len(block.args))
            argument.name_hint = old[number].name_hint
            if layer is None:
                old[number].replace_all_uses_with(argument)
            else:
                argument.name_hint = self._rename_hint(old[number].name_hint, layer)
                kept[_Key(layer, inputs[number].name)] = argument
        own: dict[SSAValue, _Key] = {old[number]: key for number, key in inputs.items()}
        calls = [o for o in block.ops if isinstance(o, CallOp) and self.has_layers(_callee(o))]
        end = block.last_op
        assert end is not None
        results = {end.operands[number]: key for number, key in outputs.items()}
        if self.pattern.fullmatch(_callee(calls[0])):
            new = self._call_layers(calls, own, results, kept)
        else:
            new = self._call_inner(calls[0], own, results, kept)
        end.operands = [
            end.operands[number] if layer is None else new[_Key(layer, outputs[number].name)]
            for number, layer in self._places(len(end.operands), outputs)
        ]
        for call in reversed(calls):
            Rewriter.erase_op(call)
        for argument in old:
            block.erase_arg(argument)
        types = FunctionType.from_lists(block.arg_types, [value.type for value in end.operands])
        op.properties["function_type"] = types

    def _call_layers(
        self,
        calls: Sequence[CallOp],
        own: Mapping[SSAValue, _Key],
        results: Mapping[SSAValue, _Key],
        kept: Mapping[_Key, SSAValue],
    ) -> dict[_Key, SSAValue]:
        """Call all layers, each with the state of the one before; return what they give to keep."""
        new: dict[_Key, SSAValue] = {}
        state, last = calls[0].operands[0], calls[-1]
        for layer, kind in enumerate(self.kinds):
            call = calls[kind]
            operands = [
                kept[_Key(layer, own[each].name)] if each in own else each for each in call.operands
            ]
            operands[0] = state
            name = self._rename(_callee(call), layer)
            again = self._insert(CallOp(name, operands, call.result_types), call, last, layer)
            for old, value in zip(call.results, again.results, strict=True):
                if old in results:
                    new[_Key(layer, results[old].name)] = value
            state = again.results[-1]
        last.results[-1].replace_all_uses_with(state)
        return new

    def _call_inner(
        self,
        call: CallOp,
        own: Mapping[SSAValue, _Key],
        results: Mapping[SSAValue, _Key],
        kept: Mapping[_Key, SSAValue],
    ) -> dict[_Key, SSAValue]:
        """Call what has the layers in it, with all that these keep; return what they give."""
        inputs = {i: own[value] for i, value in enumerate(call.operands) if value in own}
        outputs = {i: results[value] for i, value in enumerate(call.results) if value in results}
        inner = self.symbols[_callee(call)]
        self._widen(inner, inputs, outputs)
        operands = [
            call.operands[i] if layer is None else kept[_Key(layer, inputs[i].name)]
            for i, layer in self._places(len(call.operands), inputs)
        ]
        again = CallOp(_callee(call), operands, inner.function_type.outputs.data)
        self._insert(again, call, call, None)
        new: dict[_Key, SSAValue] = {}
        places = self._places(len(call.results), outputs)
        for (i, layer), value in zip(places, again.results, strict=True):
            value.name_hint = call.results[i].name_hint
            if layer is None:
                call.results[i].replace_all_uses_with(value)
            else:
                new[_Key(layer, outputs[i].name)] = value
        return new

    def _insert(self, call: CallOp, like: CallOp, before: CallOp, layer: int | None) -> CallOp:
        call.location = self.rename_location(like.location, layer)
        block = before.parent_block()
        assert block is not None
        block.insert_op_before(call, before)
        return call

    def _repeat_updates(self, updates: Updates, inputs: int, outputs: int) -> Updates:
        """Return which outputs are new values of which inputs, where there were so many."""
        starts = {given: self._key(start) for given, start in updates.values()}
        given = {
            _Key(layer, starts[old].name): new
            for new, (old, layer) in enumerate(self._places(inputs, starts))
            if layer is not None
        }
        keys = {output: self._key(start) for output, (_, start) in updates.items()}
        return {
            new: (given[_Key(layer, keys[old].name)], self._rename(updates[old][1], layer))
            for new, (old, layer) in enumerate(self._places(outputs, keys))
            if layer is not None
        }

    def _rename_hint(self, hint: str | None, layer: int) -> str | None:
        if hint is None:
            return None
        path = self.prefix.replace(".", "_")
        return re.sub(rf"{path}_\d+", f"{path}_{layer}", hint)

    def _rename_location(self, location: LocationAttr, layer: int | None) -> LocationAttr:
        if not isinstance(location, NameLoc):
            return location
        name = self._rename(location.desc.data, layer)
        return NameLoc(StringAttr(name), cast(LocationAttr, location.location))

    def _with_weights(self) -> Program:
        """Write constants and subgraphs for all layers, with the weights of each."""
        ops = list(self.module.body.block.ops)
        constants = [op for op in ops if isinstance(op, ConstantOp)]
        repeated: list[Operation] = []
        stored: dict[str, str] = {}
        with progress("Reading weights", total=len(constants) * len(self.kinds)) as step:
            for op, layer in self._repeat(constants):
                repeated.append(self._constant(op, layer, stored))
                step()
        for op, layer in self._repeat([op for op in ops if not isinstance(op, ConstantOp)]):
            if layer is None:
                op.detach()
            repeated.append(op if layer is None else self._copy(op, layer))
        store = self.weights.select({key: key for key in stored if key in self.weights})
        store.merge(self.store.select({k: old for k, old in stored.items() if k not in store}))
        return Program(ModuleOp(repeated, self.module.attributes), store)

    def _repeat(self, ops: Sequence[Op]) -> Iterator[tuple[Op, int | None]]:
        """Yield ops with symbols in their new order, each with the layer that it is for."""
        names = [cast(StringAttr, op.properties["sym_name"]).data for op in ops]
        return ((ops[number], layer) for number, layer in self._places(len(ops), self._keys(names)))

    def _constant(self, op: ConstantOp, layer: int | None, stored: dict[str, str]) -> ConstantOp:
        """Return a constant for a layer, and note under which key it was stored, if it was."""
        name = self._rename(op.sym_name.data, layer)
        assert isinstance(op.value, RefAttr)
        stored[name] = op.value.key
        is_weight = name in self.weights
        sha256 = self.weights.hash(name) if is_weight else self.store.hash(op.value.key)
        return ConstantOp(name, op.type, RefAttr(name, sha256))

    def _copy(self, subgraph: Operation, layer: int) -> Operation:
        copy = subgraph.clone()
        for op in copy.walk():
            op.location = self.rename_location(op.location, layer)
            if isinstance(op, GetConstantOp):
                op.properties["symbol"] = self._symbol(op.symbol, layer)
            elif isinstance(op, CallOp):
                op.properties["callee"] = self._symbol(op.callee, layer)
            elif isinstance(op, SubgraphOp):
                op.properties["sym_name"] = StringAttr(self._rename(op.sym_name.data, layer))
                for argument in op.body.block.args:
                    argument.name_hint = self._rename_hint(argument.name_hint, layer)
        return copy

    def _symbol(self, symbol: SymbolRefAttr, layer: int) -> SymbolRefAttr:
        return SymbolRefAttr(self._rename(symbol.root_reference.data, layer))


def _callee(call: CallOp) -> str:
    return call.callee.root_reference.data
