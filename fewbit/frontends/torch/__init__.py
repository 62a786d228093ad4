"""PyTorch models as programs.

`capture` traces, `hierarchy` finds the modules in the trace, `emit` writes ops (by the table in
`aten`, and through `islands` for others). The result is a `main` function that calls the subgraph
`@model`; parameters and buffers are in the program's store, under the names that the model gives
them. Buffers that the model updates in place become inputs and outputs behind its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import Node
from torch.utils._pytree import tree_leaves, tree_map_only
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fewbit.base.typed_torch import named_modules
from fewbit.dialects import graph, mico
from fewbit.errors import UnsupportedError, UsageError
from fewbit.frontends.layers import find_layers
from fewbit.frontends.torch.capture import capture, decompose, export, quiet, take_apart
from fewbit.frontends.torch.emit import Emitted, emit_frame
from fewbit.frontends.torch.hierarchy import ROOT, build_frames, rename_modules
from fewbit.frontends.torch.islands import Islands, UnloweredError, check_types
from fewbit.frontends.torch.open_dims import warn_of_fixed
from fewbit.frontends.torch.sizes import size_assertions, take_guards
from fewbit.frontends.torch.types import array_of, tensor_type, value_type
from fewbit.ir.context import make_context
from fewbit.ir.layers import REGISTERED
from fewbit.ir.symbols import value_name
from fewbit.ir.verify import verify
from fewbit.passes.graph.inline import Inline
from fewbit.pipeline.compilation import apply_passes
from fewbit.program.output_names import name_outputs
from fewbit.program.program import Program
from fewbit.program.state import mark_updates
from fewbit.program.store import WeightRef, WeightStore
from fewbit.quant.torch.prepare import is_prepared, quantizable_layers

_CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def import_torch(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Program:
    """A program of a module, traced on the example inputs, or of an exported program.

    Inputs are a sequence, or a mapping of named ones, as tokenizers return it; the results of a
    module that names them, in a dictionary or dataclass, keep their names.
    """
    if isinstance(model, ExportedProgram):
        with quiet():
            decomposed = decompose(model)
        return _Import(decomposed).program()
    _check_model(model)
    arguments, named = _example_call(example_inputs, example_kwargs)
    captured = capture(model, arguments, named, dynamic_shapes)
    if dynamic_shapes is not None and not _asks_for_fixing(dynamic_shapes):
        warn_of_fixed(captured.program)
    program = _Import(captured.program, _first_names(model), captured.output_names).program()
    return _register_layers(program, model)


def import_with_weights(
    model: torch.nn.Module,
    arguments: tuple[torch.Tensor, ...],
    dynamic_shapes: Any,
    weights: WeightStore,
) -> Program:
    """A program of a module of ours whose parameters only say their shapes; a store has the values.

    The module is not run beforehand, and must compute nothing from parameters alone.
    """
    own = {name: id(tensor) for name, tensor in model.named_parameters(remove_duplicate=False)}
    exported = export(model, arguments, dynamic_shapes=dynamic_shapes)
    with quiet():
        exported = decompose(exported)
    for name in exported.graph_signature.parameters:
        assert name in weights, f"the store has no '{name}'"
        assert id(exported.state_dict[name]) == own[name], f"'{name}' is computed from parameters"
    return _register_layers(_Import(exported, _first_names(model), given=weights).program(), model)


def _register_layers(program: Program, model: torch.nn.Module) -> Program:
    names = [StringAttr(name) for name in quantizable_layers(model)]
    program.module.attributes[REGISTERED] = ArrayAttr(names)
    return program


def _asks_for_fixing(dynamic_shapes: Any) -> bool:
    """Return whether torch is to decide by itself which sizes are dynamic."""
    return any(dim == Dim.AUTO for dim in tree_leaves(dynamic_shapes))


def _example_call(
    inputs: Sequence[Any] | Mapping[str, Any], named: Mapping[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments, arrays of numpy among them as tensors."""
    if isinstance(inputs, Mapping):
        inputs, named = (), {**inputs, **(named or {})}
    if isinstance(inputs, torch.Tensor | np.ndarray):
        inputs = (inputs,)
    given = (tuple(inputs), dict(named or {}))
    return tree_map_only(np.ndarray, lambda array: torch.tensor(array), given)


def _check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__} is not a model", hint="pass a torch.nn.Module")
    if is_prepared(model):
        raise UsageError(
            "the model is prepared for quantization-aware training",
            hint="import convert(model), and quantize it by recipe_of(model)",
        )


def _first_names(model: torch.nn.Module) -> dict[str, str]:
    """Map every name of a module to the first of them: a shared module has several."""
    first: dict[int, str] = {}
    for name, module in named_modules(model, remove_duplicate=False):
        first.setdefault(id(module), name)
    modules = named_modules(model, remove_duplicate=False)
    return {name: first[id(module)] for name, module in modules}


class _Import:
    def __init__(
        self,
        exported: ExportedProgram,
        first_names: Mapping[str, str] | None = None,
        output_names: Sequence[str | None] = (),
        given: WeightStore | None = None,
    ) -> None:
        self.exported = exported
        self.given = given or WeightStore()
        """Weights that are taken from here, not from the module."""
        self.output_names = output_names
        self.first_names = first_names or {}
        self.guards = take_guards(exported.graph_module)
        rename_modules(exported.graph, self.first_names)
        self._read_signature()

    def _read_signature(self) -> None:
        self.store = WeightStore()
        self.constants: list[mico.ConstantOp] = []
        self.weights: dict[Node, str] = {}
        self.inputs: list[Node] = []
        self.state: list[Node] = []
        self._sort_inputs()

    def _sort_inputs(self) -> None:
        mutated = set(self.exported.graph_signature.buffers_to_mutate.values())
        placeholders = {n.name: n for n in self.exported.graph.nodes if n.op == "placeholder"}
        for spec in self.exported.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                if node.users or isinstance(node.meta.get("val"), torch.Tensor):
                    self.inputs.append(node)
            elif spec.kind is InputKind.BUFFER and spec.target in mutated:
                self.state.append(node)
                self._add_constant(str(spec.target))  # its initial value
            elif spec.kind in _CONSTANTS and spec.target is not None:
                self._add_weight(node, spec.target)
            elif spec.kind is not InputKind.TOKEN:
                raise UnsupportedError(f"the input '{node.name}' ({spec.kind}) is not imported")

    def _add_weight(self, node: Node, name: str) -> None:
        if not node.users:
            return
        owner, dot, own = name.rpartition(".")
        self.weights[node] = f"{self.first_names.get(owner, owner)}{dot}{own}"
        if self.weights[node] not in self.store:
            self._add_constant(name, self.weights[node])

    def _add_constant(self, target: str, name: str | None = None) -> None:
        name = name or target
        data = self.exported.state_dict.get(target)
        if data is None:
            data = cast(torch.Tensor, self.exported.constants[target])
        ref = self._store(name, data)
        value = mico.RefAttr(ref.key, ref.sha256)
        self.constants.append(mico.ConstantOp(name, tensor_type(data), value))

    def _store(self, name: str, data: torch.Tensor) -> WeightRef:
        if name not in self.given:
            return self.store.add(name, array_of(data), copy=False)
        self.store.merge(self.given.select({name: name}))
        return self.store.ref(name)

    def program(self) -> Program:
        """The program; ops that torch-mlir cannot lower are taken apart as torch does by itself."""
        tried = set[Any]()
        first: UnloweredError | None = None
        while True:
            try:
                return self._program()
            except UnloweredError as e:
                first = first or e
                apart = take_apart(self.exported, e.ops - tried)
                if apart is None:
                    raise e if e.ops <= first.ops else first from None
                tried |= e.ops
                self.exported = apart
                self._read_signature()

    def _program(self) -> Program:
        check_types(self.exported.graph)
        islands = Islands()
        subgraphs: list[graph.SubgraphOp] = []
        root = build_frames(self.exported.graph)
        model = emit_frame(root, islands, self.weights, self.exported.graph_module, subgraphs)
        functions = islands.lower(make_context())
        for function in functions:
            function.properties["sym_visibility"] = StringAttr("private")
        main = self._main(model)
        ops: list[Operation] = [*self.constants, *subgraphs, main, *functions]
        module = ModuleOp(ops)
        program = Program(module, self.store)
        if functions:
            apply_passes(program, Inline(only=("re:aten\\..*",)))
        program = find_layers(program)
        verify(module, stage="import")
        return program

    def _main(self, model: Emitted) -> FuncOp:
        nodes = [*self.inputs, *self.state]
        block = Block(arg_types=[value_type(node.meta["val"]) for node in nodes])
        values: dict[Node, SSAValue] = dict(zip(nodes, block.args, strict=True))
        for node, argument in values.items():
            argument.name_hint = value_name(node.name)
        block.add_ops(size_assertions(self.exported, values, self.guards))
        arguments = [values[node] for node in model.inputs]
        call = graph.CallOp(ROOT, arguments, model.subgraph.function_type.outputs.data)
        block.add_op(call)
        values |= dict(zip(model.outputs, call.results, strict=True))
        for node in self._outputs():
            if node in self.weights:
                read = mico.GetConstantOp(self.weights[node], value_type(node.meta["val"]))
                block.add_op(read)
                values[node] = read.result
        results = [values[node] for node in self._outputs()]
        block.add_op(ReturnOp(*results))
        types = ([arg.type for arg in block.args], [value.type for value in results])
        main = FuncOp("main", types, Region(block))
        mark_updates(main, self._updates())
        name_outputs(main, self._result_names())
        return main

    def _result_names(self) -> list[str | None]:
        """For each of the model's own outputs, its name if it has one; None is left out."""
        specs = self.exported.graph_signature.output_specs
        own = [s for s in specs if s.kind is OutputKind.USER_OUTPUT]
        named = zip(self.output_names, own, strict=False)
        return [name for name, spec in named if not _is_none(spec.arg)]

    def _updates(self) -> dict[int, tuple[int, str]]:
        """Map outputs, by number, to the inputs whose new values they are, and their buffers."""
        names = self.exported.graph_signature.inputs_to_buffers
        inputs = {names[node.name]: len(self.inputs) + i for i, node in enumerate(self.state)}
        specs = self.exported.graph_signature.output_specs
        mutated = [s.target for s in specs if s.kind is OutputKind.BUFFER_MUTATION]
        first = len(self._outputs()) - len(mutated)
        return {first + i: (inputs[name], name) for i, name in enumerate(mutated) if name}

    def _outputs(self) -> list[Node]:
        """The model's own outputs, then the new values of its state."""
        by_name = {node.name: node for node in self.exported.graph.nodes}
        specs = self.exported.graph_signature.output_specs
        if any(s.kind is OutputKind.USER_INPUT_MUTATION for s in specs):
            raise UnsupportedError(
                "forward changes one of its inputs in place, which the program would not",
                hint="work on a copy (x = x.clone()), or return the changed tensor",
            )
        specs = [s for s in specs if not _is_none(s.arg)]
        if not all(s.arg.name in by_name for s in specs):
            raise UnsupportedError(
                "forward returns something that is no tensor",
                hint="return tensors only; None is left out",
            )
        own = [s.arg.name for s in specs if s.kind is OutputKind.USER_OUTPUT]
        state = [s.arg.name for s in specs if s.kind is OutputKind.BUFFER_MUTATION]
        return [by_name[name] for name in (*own, *state)]


def _is_none(argument: Any) -> bool:
    return isinstance(argument, ConstantArgument) and argument.value is None
