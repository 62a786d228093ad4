"""An ONNX graph as a torch module, and its trace."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from fewbit.errors import Error, Place, UnsupportedError
from fewbit.frontends.onnx.constants import Constants
from fewbit.frontends.onnx.evaluate import Evaluator, Scope, tracing
from fewbit.frontends.onnx.graph import Graph, Node
from fewbit.frontends.onnx.inputs import Input
from fewbit.frontends.onnx.kinds import SMALL_FLOATS, UNSIGNED, boundary_dtype
from fewbit.frontends.onnx.small_floats import decode, encode
from fewbit.frontends.onnx.values import Known, Many, Traced, Value
from fewbit.frontends.torch.unsigned import narrow, widen


class OnnxModule(nn.Module):
    """Evaluates a graph; holds its constants under their names."""

    def __init__(
        self, graph: Graph, inputs: Sequence[Input], given: Mapping[str, Known],
        opsets: Mapping[str, int], source: str,
    ) -> None:  # fmt: skip
        super().__init__()
        self.graph, self.inputs = graph, tuple(inputs)
        self.given, self.opsets = dict(given), dict(opsets)
        self.evaluator = Evaluator(source, Constants(self))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        values: dict[str, Value | None] = dict(self.given)
        for input, tensor in zip(self.inputs, tensors, strict=True):
            values[input.name] = Traced(
                self._input(tensor, input.kind),
                input.kind,
                input.name,
                roots=frozenset({input.name}),
            )
        scope = Scope(ChainMap(values), self.opsets)
        results = self.evaluator.graph(self.graph, scope)
        return tuple(self._output(*pair) for pair in zip(self.graph.outputs, results, strict=True))

    def _input(self, tensor: Tensor, kind: int) -> Tensor:
        if kind in SMALL_FLOATS:
            return decode(widen(tensor), kind, self.evaluator.tensor)
        return widen(tensor) if kind in UNSIGNED else tensor

    def _output(self, name: str, value: Value | None) -> Tensor:
        if value is None:
            raise Error(f"the output '{name}' is not defined by the graph")
        if isinstance(value, Many):
            raise UnsupportedError(f"the output '{name}' is a sequence of tensors")
        tensor = self.evaluator.tensor(value)
        dtype = boundary_dtype(value.kind)
        if value.kind in SMALL_FLOATS:
            return narrow(encode(tensor, value.kind, self.evaluator.tensor), dtype)
        return narrow(tensor, dtype) if value.kind in UNSIGNED else tensor.clone()


def trace(
    module: OnnxModule, examples: Sequence[Tensor], dynamic_shapes: object
) -> ExportedProgram:
    """Run once, on shapes without data, to find the constants; then let torch trace."""
    from fewbit.frontends.torch.capture import export, quiet
    from fewbit.frontends.torch.open_dims import sizes_of_any_kind

    env = ShapeEnv()
    fake = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env)
    with quiet(), torch.no_grad(), sizes_of_any_kind(), fake as mode:
        module(*(_fake(mode, *each) for each in zip(module.inputs, examples, strict=True)))
    shapes = None if dynamic_shapes is None else {"tensors": dynamic_shapes}
    try:
        with tracing(module.evaluator):
            exported = export(module, tuple(examples), None, shapes)
    except Error as error:
        raise error.at(**vars(module.evaluator.failed or Place())) from None
    _name_modules(exported.graph_module, module)
    return exported


def _fake(mode: FakeTensorMode, input: Input, example: Tensor) -> Tensor:
    """An example without data, whose dynamic sizes are symbols."""
    kinds = [DimDynamic.DUCK if isinstance(s, str) else DimDynamic.STATIC for s in input.shape]
    context = cast(Any, StatelessSymbolicContext)(dynamic_sizes=kinds)
    return mode.from_tensor(example, symbolic_context=context)


def _name_modules(traced: GraphModule, module: OnnxModule) -> None:
    """Say of each node of the trace which module it comes from, as the file's names tell."""
    nodes: dict[int, Node] = {node.number: node for node in module.graph.all_nodes()}
    line = re.compile(rf'File "{re.escape(module.evaluator.source)}", line (\d+)')
    for graph_module in traced.modules():
        if not isinstance(graph_module, GraphModule):
            continue
        for node in graph_module.graph.nodes:
            lines = line.findall(node.meta.get("stack_trace") or "")
            if not lines or int(lines[-1]) not in nodes:
                continue
            path = nodes[int(lines[-1])].module
            node.meta["nn_module_stack"] = _stack(path) if path else {}


def _stack(path: str) -> dict[str, tuple[str, str]]:
    parts = path.split(".")
    paths = [".".join(parts[: i + 1]) for i in range(len(parts))]
    return {p: (p, "onnx") for p in paths}
