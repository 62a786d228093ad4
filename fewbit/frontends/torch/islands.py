"""Whatever has no op of ours, through torch-mlir to linalg.

Each such node becomes a function of its own, equal nodes one function. All functions are
lowered in a single torch-mlir module, which takes a fraction of a second, and come back as xDSL
through generic text; the importer inlines them where they are called. If the lowering fails, every
function is tried alone, so that the error names all ops that cannot be imported, not the first.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch._higher_order_ops.effects import with_effects
from torch._ops import OpOverload
from torch.fx import Graph, Node
from xdsl.context import Context
from xdsl.dialects.arith import TruncIOp
from xdsl.dialects.func import FuncOp

from fewbit.errors import UnsupportedError
from fewbit.frontends.torch.aten import CONVERTERS, is_check, name_of
from fewbit.frontends.torch.nan_order import order_nans
from fewbit.frontends.torch.sources import source_of
from fewbit.frontends.torch.types import NARROW, WIDEN, is_known, is_unsigned
from fewbit.ir.locations import forget_locations
from fewbit.ir.parse import parse_module

# What torch-mlir's own simplification does, but for inferring types: every node tells its own. To
# infer them, torch-mlir parses its library of shape functions anew, the longest part of it all.
TYPED = """
  func.func(canonicalize, torch-recompose-complex-ops, torch-reduce-op-variants, canonicalize),
  func.func(torch-maximize-value-semantics), torch-refine-public-return, func.func(canonicalize)"""
INFERRED = "torch-simplification-pipeline"

# torch-mlir's own backend pipeline, less the last step, a contract check.
PIPELINE = """builtin.module(
  {simplification},
  func.func(torch-decompose-complex-ops),
  canonicalize,
  func.func(torch-match-quantized-custom-ops, torch-fuse-quantized-ops, torch-scalarize-shapes),
  func.func(convert-torch-to-tmtensor),
  canonicalize,
  func.func(convert-torch-to-linalg),
  canonicalize,
  func.func(convert-torch-to-scf, convert-torch-to-arith, convert-torch-to-tensor),
  convert-torch-conversion-to-mlprogram,
  func.func(memref-expand),
  canonicalize,
  func.func(cse),
  torch-func-backend-type-conversion,
  canonicalize,
  func.func(torch-finalizing-backend-type-conversion))"""


class UnloweredError(UnsupportedError):
    """Ops of ATen that torch-mlir cannot lower."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        error = unsupported_error(nodes)
        super().__init__(error.what, hint=error.hint)
        self.ops: frozenset[Any] = frozenset(node.target for node in nodes)


class Islands:
    """The functions that one import needs."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[Node]] = {}
        self._names: dict[Any, str] = {}

    def name_of(self, node: Node) -> str:
        """The function that computes `node`; made if none like it is known."""
        key = _key(node)
        if key not in self._names:
            word = str(node.target).replace(".default", "").replace("aten.", "")
            self._names[key] = f"aten.{word}.{len(self._names)}"
            self._nodes[self._names[key]] = []
        name = self._names[key]
        self._nodes[name].append(node)
        return name

    def lower(self, ctx: Context) -> list[FuncOp]:
        """Lower all functions to linalg."""
        if not self._nodes:
            return []
        text = _lower({name: nodes[0] for name, nodes in self._nodes.items()})
        if text is None:
            raise self._unsupported()
        module = parse_module(text, "torch-mlir", ctx)
        functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        for function in functions:
            _drop_unknown_flags(function)
            order_nans(function)
            forget_locations(function)
            function.detach()
        return functions

    def _unsupported(self) -> UnloweredError:
        groups = self._nodes.items()
        bad = [nodes for name, nodes in groups if _lower({name: nodes[0]}) is None]
        return UnloweredError([node for nodes in bad for node in nodes])


def _drop_unknown_flags(function: FuncOp) -> None:
    """Upstream's `trunci` says that overflow is defined, for which xDSL's has no place."""
    for op in function.walk():
        if isinstance(op, TruncIOp):
            op.properties.pop("overflowFlags", None)


def unsupported_error(nodes: Sequence[Node]) -> UnsupportedError:
    lines = [f"  {node.target}: {source_of(node)}" for node in nodes]
    return UnsupportedError(
        "these ops cannot be imported:\n" + "\n".join(lines or ["  (each alone can)"]),
        hint="write them with other ops, or keep that part outside of the model",
    )


def check_types(graph: Graph) -> None:
    """Refuse a graph with tensors that no program holds (sparse ones); name all its bad ops."""
    nodes = [node for node in graph.nodes if _has_effects(node) or _is_op(node)]
    bad = [node for node in nodes if not _has_known_types(node)]
    if bad:
        raise unsupported_error([*bad, *unsupported_beside(bad, graph)])


def unsupported_beside(bad: Sequence[Node], graph: Graph) -> list[Node]:
    """The other nodes that cannot be lowered, but for those that compute with bad ones."""
    return [
        node
        for node in graph.nodes
        if _is_op(node)
        and node not in bad
        and not set(node.all_input_nodes) & set(bad)
        and name_of(node) not in CONVERTERS
        and not is_check(node)
        and _lower({"alone": node}) is None
    ]


def _is_op(node: Node) -> bool:
    return isinstance(node.target, OpOverload)


def _has_effects(node: Node) -> bool:
    """Return whether a node is an op with effects, such as an error that a kernel raises."""
    return node.target is with_effects


def _has_known_types(node: Node) -> bool:
    if _has_effects(node):
        return False
    if name_of(node) in (WIDEN, NARROW):
        return True
    inputs = (value for arg in node.all_input_nodes for value in outputs_of(arg))
    return all(map(is_known, outputs_of(node))) and not any(map(is_unsigned, inputs))


def _key(node: Node) -> Any:
    """Nodes of one key compute the same function of their inputs."""
    inputs = {arg: i for i, arg in enumerate(node.all_input_nodes)}

    def describe(value: Any) -> Any:
        if isinstance(value, Node):
            return ("input", inputs[value], _describe_value(value.meta["val"]))
        if isinstance(value, list | tuple):
            return tuple(describe(v) for v in cast("Sequence[Any]", value))
        return (type(value).__name__, str(value))

    named = tuple(sorted((k, describe(v)) for k, v in node.kwargs.items()))
    return node.target, describe(node.args), named, _describe_value(node.meta["val"])


def _describe_value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(str(size) for size in value.shape)
    if isinstance(value, list | tuple):
        return tuple(_describe_value(v) for v in cast("Sequence[Any]", value))
    return type(value).__name__


def _lower(nodes: dict[str, Node]) -> str | None:
    """The lowered functions as generic text; None where torch-mlir cannot.

    Ops that torch-mlir takes apart may leave types open, which it then has to infer.
    """
    return lower_with(TYPED, nodes) or lower_with(INFERRED, nodes)


def lower_with(simplification: str, nodes: dict[str, Node]) -> str | None:
    """The functions as generic text, lowered after a simplification; None where that fails."""
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter
    from torch_mlir.ir import Context as UpstreamContext
    from torch_mlir.passmanager import PassManager

    context = UpstreamContext()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    # What fails is told by ourselves, op by op.
    context.attach_diagnostic_handler(_is_handled)
    try:
        for name, node in nodes.items():
            importer.import_stateless_graph(_single(node), func_name=name)
        with context:
            pipeline = PassManager.parse(PIPELINE.format(simplification=simplification))
            pipeline.run(importer.module.operation)
    except Exception:
        return None
    text: str = importer.module.operation.get_asm(print_generic_op_form=True)
    # Globals hold the state of random numbers, which a program has no place for.
    left_over = ('"torch.', "!torch.", '"ml_program.global"')
    return None if any(word in text for word in left_over) else text


def _is_handled(diagnostic: object) -> bool:
    return True


def _single(node: Node) -> Graph:
    """A graph of one node, whose inputs are its arguments."""
    graph = Graph()
    inputs: dict[Node, Node] = {}
    for argument in node.all_input_nodes:
        inputs[argument] = graph.placeholder(argument.name)
        inputs[argument].meta = dict(argument.meta)
    copy = graph.node_copy(node, lambda argument: inputs[argument])
    value = node.meta["val"]
    if not isinstance(value, list | tuple):
        graph.output((copy,))
        return graph
    parts: list[Node] = []
    for i, part in enumerate(cast("Sequence[Any]", value)):
        item = graph.call_function(operator.getitem, (copy, i))
        item.meta = {"val": part}
        parts.append(item)
    graph.output(tuple(parts))
    return graph


def outputs_of(node: Node) -> Iterable[Any]:
    """Return what a node computes, one entry for each result."""
    value = node.meta.get("val")
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
