# pyright: basic
"""PyTorch models as programs.

`capture` traces, `hierarchy` finds the modules in the trace, `emit` writes ops (by the table in
`aten`, and through `islands` for the rest). The result is a `main` function that calls the subgraph
`@model`; parameters and buffers are in the program's store, under the names that the model gives
them. Buffers that the model updates in place become inputs and outputs behind its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fewbit.dialects import graph, mico
from fewbit.errors import UnsupportedError
from fewbit.frontends.torch.capture import capture, decompose
from fewbit.frontends.torch.emit import Emitted, emit_frame
from fewbit.frontends.torch.hierarchy import ROOT, build_frames
from fewbit.frontends.torch.islands import Islands, check_types
from fewbit.frontends.torch.types import array_of, tensor_type, value_type
from fewbit.ir.context import make_context
from fewbit.ir.verify import verify
from fewbit.program import Program
from fewbit.store import WeightStore
from fewbit.transforms.inline import Inline

_CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def import_torch(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Program:
    """A program of a module, traced on the example inputs, or of an exported program."""
    if isinstance(model, ExportedProgram):
        exported = decompose(model)
    else:
        exported = capture(model, example_inputs, example_kwargs, dynamic_shapes)
    return _Import(exported).program()


class _Import:
    def __init__(self, exported: ExportedProgram) -> None:
        self.exported = exported
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
            elif spec.kind in _CONSTANTS and spec.target is not None:
                self._add_weight(node, spec.target)
            else:
                raise UnsupportedError(f"the input '{node.name}' ({spec.kind}) is not imported")

    def _add_weight(self, node: Node, name: str) -> None:
        if not node.users:
            return
        data = self.exported.state_dict.get(name)
        if data is None:
            data = cast(torch.Tensor, self.exported.constants[name])
        self.weights[node] = name
        ref = self.store.add(name, array_of(data), copy=False)
        value = mico.RefAttr(ref.key, ref.sha256)
        self.constants.append(mico.ConstantOp(name, tensor_type(data), value))

    def program(self) -> Program:
        check_types(
            [n for n in self.exported.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
        )
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
        if functions:
            Inline(only=("re:aten\\..*",)).apply(make_context(), module)
        verify(module, stage="import")
        return Program(module, self.store)

    def _main(self, model: Emitted) -> FuncOp:
        nodes = [*self.inputs, *self.state]
        block = Block(arg_types=[value_type(node.meta["val"]) for node in nodes])
        values: dict[Node, SSAValue] = dict(zip(nodes, block.args, strict=True))
        for node, argument in values.items():
            argument.name_hint = node.name
        arguments = [values[node] for node in model.inputs]
        call = graph.CallOp(ROOT, arguments, model.subgraph.function_type.outputs.data)
        block.add_op(call)
        values |= dict(zip(model.outputs, call.results, strict=True))
        results = [values[node] for node in self._outputs()]
        block.add_op(ReturnOp(*results))
        types = ([arg.type for arg in block.args], [value.type for value in results])
        return FuncOp("main", types, Region(block))

    def _outputs(self) -> list[Node]:
        """The model's own outputs, then the new values of its state."""
        by_name = {node.name: node for node in self.exported.graph.nodes}
        specs = self.exported.graph_signature.output_specs
        own = [s.arg.name for s in specs if s.kind is OutputKind.USER_OUTPUT]
        state = [s.arg.name for s in specs if s.kind is OutputKind.BUFFER_MUTATION]
        return [by_name[name] for name in (*own, *state)]
