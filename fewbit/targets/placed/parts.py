"""The parts of a program that `split-parts` has split, each as a program of its own.

The module's entry calls parts and transfers values, and does nothing else; so its text says all
that the manifest of an artifact has to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fewbit.codegen.interface import C_TYPES
from fewbit.dialects.graph import CallOp, SubgraphOp, TransferOp
from fewbit.dialects.mico import element_type, shape_of
from fewbit.dialects.mico.types import FewBitType
from fewbit.errors import UnsupportedError
from fewbit.interpreter.values import dtype_of
from fewbit.ir.layers import Layer, layer_name
from fewbit.ir.symbols import SymbolTable, symbol_name
from fewbit.passes.graph.calls import symbols_used
from fewbit.passes.graph.size_formulas import SizeFormulas
from fewbit.pipeline.entry import entry_of
from fewbit.program.artifact import Part, Tensor, Transfer
from fewbit.program.output_names import name_outputs
from fewbit.program.program import Program
from fewbit.program.signature import Signature, TensorSpec, signature_of
from fewbit.program.state import mark_updates, updates_of

ENTRY = "main"


@dataclass(frozen=True)
class PlacedPart:
    """A part, and the program that its target compiles."""

    record: Part
    program: Program


@dataclass(frozen=True)
class PlacedProgram:
    """A program as its parts, in the order of their calls."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    results: tuple[str, ...]
    """The value that each output is."""
    parts: tuple[PlacedPart, ...]
    transfers: tuple[Transfer, ...]


def read_parts(program: Program) -> PlacedProgram:
    """Take apart a program whose entry calls parts."""
    return _Reader(program).read()


class _Reader:
    def __init__(self, program: Program) -> None:
        self.program, self.module = program, program.module
        self.entry = entry_of(self.module)
        self.symbols = SymbolTable(self.module)
        self.names: dict[SSAValue, str] = {}
        self.states: dict[SSAValue, tuple[int, str]] = {
            self.entry.body.block.args[given]: (output, start)
            for output, (given, start) in updates_of(self.entry).items()
        }

    def read(self) -> PlacedProgram:
        signature = signature_of(self.module)
        block = self.entry.body.block
        self._name_values(block, signature)
        self.formulas = SizeFormulas(self.symbols, {arg: self.names[arg] for arg in block.args})
        calls = [op for op in block.ops if isinstance(op, CallOp)]
        transfers = [op for op in block.ops if isinstance(op, TransferOp)]
        assert block.last_op is not None
        return PlacedProgram(
            tuple(map(_tensor, signature.inputs)),
            tuple(map(_tensor, signature.outputs)),
            tuple(self.names[value] for value in block.last_op.operands),
            tuple(map(self._part, calls)),
            tuple(map(self._transfer, transfers)),
        )

    def _name_values(self, block: Block, signature: Signature) -> None:
        taken = {spec.name for spec in signature.inputs}
        self.names = {
            arg: spec.name for arg, spec in zip(block.args, signature.inputs, strict=True)
        }
        for op in block.ops:
            if isinstance(op, TransferOp):
                self.names[op.result] = self.names[op.source]
                continue
            for value in op.results:
                name = wanted = value.name_hint or "value"
                number = 1
                while name in taken:
                    number += 1
                    name = f"{wanted}_{number}"
                taken.add(name)
                self.names[value] = name

    def _part(self, call: CallOp) -> PlacedPart:
        subgraph = self.symbols[call.callee.root_reference.data]
        assert isinstance(subgraph, SubgraphOp)
        program = self._program(call, subgraph)
        record = Part(
            name=subgraph.sym_name.data,
            target=subgraph.device_name or "",
            inputs=tuple(self.names[value] for value in call.arguments),
            outputs=tuple(self.names[value] for value in call.res),
            modules=tuple(_modules(program.module)),
        )
        return PlacedPart(record, program)

    def _program(self, call: CallOp, subgraph: SubgraphOp) -> Program:
        """Return a part with all symbols that it reaches; its devices are the target's matter."""
        needed = list(self._reachable(subgraph))
        reached = {subgraph, *needed}
        kept = [op.clone() for op in self.module.ops if op in reached and op is not subgraph]
        for op in kept:
            if isinstance(op, SubgraphOp):
                op.device = None
        function = _function(subgraph.clone())
        mark_updates(function, self._updates(call))
        name_outputs(function, [self.names[value] for value in call.res])
        module = ModuleOp([*kept, function], dict(self.module.attributes))
        return Program(module, self.program.store, self.program.recipe)

    def _updates(self, call: CallOp) -> Mapping[int, tuple[int, str]]:
        """Return the state that a part updates, by the numbers of its own outputs and inputs."""
        end = self.entry.body.block.last_op
        assert end is not None
        updates: dict[int, tuple[int, str]] = {}
        for number, value in enumerate(call.arguments):
            if value not in self.states:
                continue
            output, start = self.states[value]
            if end.operands[output].owner is call:
                updates[list(call.res).index(end.operands[output])] = (number, start)  # pyright: ignore[reportArgumentType]
        return updates

    def _reachable(self, root: Operation) -> Iterator[Operation]:
        stack, seen = [root], {root}
        for _, start in self.states.values():
            if start in self.symbols:
                seen.add(self.symbols[start])
                yield self.symbols[start]
        while stack:
            for reference in symbols_used(stack.pop()):
                op = self.symbols.get(reference.root_reference.data)
                if op is not None and op not in seen:
                    seen.add(op)
                    stack.append(op)
                    yield op

    def _transfer(self, op: TransferOp) -> Transfer:
        name = self.names[op.source]
        shape = tuple(None if size < 0 else size for size in shape_of(op.source.type))
        tensor = Tensor(name=name, shape=shape, element=_element(op.source))
        known = [size for size in shape if size is not None]
        fixed = prod(known) * _element_bytes(op.source)
        open_sizes = [
            self.formulas.of(op.source, axis) or f"{name}[{axis}]"
            for axis, size in enumerate(shape)
            if size is None
        ]
        return Transfer(
            value=tensor,
            source=op.from_device.data,
            target=op.to_device.data,
            bytes=None if open_sizes else fixed,
            formula=" * ".join([str(fixed), *open_sizes]),
        )


def _function(subgraph: SubgraphOp) -> func.FuncOp:
    """Return the body of a part as the entry of a module."""
    block = subgraph.body.block
    last = block.last_op
    assert last is not None
    end = func.ReturnOp(*last.operands)
    end.location = last.location
    block.insert_op_before(end, last)
    block.erase_op(last)
    body = Region(subgraph.body.detach_block(block))
    function = func.FuncOp(ENTRY, subgraph.function_type, body)
    function.location = subgraph.location
    return function


def _modules(module: ModuleOp) -> Iterator[str]:
    """Yield the modules of a model that a part computes, the outermost only."""
    subgraphs = [symbol_name(op) or "" for op in module.ops if isinstance(op, SubgraphOp)]
    entry = entry_of(module)
    layers = [layer_name(op) for op in entry.walk() if isinstance(op, Layer)]
    names = dict.fromkeys([*subgraphs, *(name for name in layers if name is not None)])
    for name in names:
        if not any(name.startswith(f"{other}.") for other in names):
            yield name


def _tensor(spec: TensorSpec) -> Tensor:
    if spec.shape is None:
        raise UnsupportedError(f"the rank of '{spec.name}' is known only at run time")
    element = "i8" if spec.element.startswith("!mico") else spec.element
    return Tensor(name=spec.name, shape=spec.shape, element=element, updates=spec.updates)


def _element(value: SSAValue) -> str:
    element = element_type(value.type)
    return "i8" if isinstance(element, FewBitType) else str(element)


def _element_bytes(value: SSAValue) -> int:
    element = element_type(value.type)
    if isinstance(element, FewBitType):
        return 1
    if str(element) not in C_TYPES:
        raise UnsupportedError(f"values of {value.type} cannot pass from device to device")
    return dtype_of(element).itemsize
