"""Unsigned inputs and outputs: as such at the boundary of a program, and in wider integers inside.

Two ops of torch carry this through a trace: `widen` reads an unsigned tensor, `narrow` writes one.
The importer of PyTorch's graphs writes them as casts. No other op takes unsigned tensors: a trace
that computes with them is rewritten to compute with what holds them, and to wrap around after each
op that may leave their range.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._pytree import tree_map
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue

from fewbit.decompositions.rebuild import Builder, mode_of, rename_outputs
from fewbit.dialects.upstream.tensor import BitcastOp
from fewbit.frontends.torch.aten import Arguments, converts, name_of
from fewbit.frontends.torch.emit import Emitter
from fewbit.frontends.torch.types import NARROW, WIDEN, tensor_type
from fewbit.passes.linalg.building.loops import apply

_HELD = {
    torch.uint8: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}
_BOUNDARY = {str(dtype).removeprefix("torch."): dtype for dtype in _HELD}
_LIMITS = {torch.uint8: 0xFF, torch.uint16: 0xFFFF, torch.uint32: 0xFFFFFFFF}
"""The largest number of each type that a trace may compute with."""

_MOVES = (
    "alias", "cat", "clone", "constant_pad_nd", "copy", "detach", "diagonal", "embedding", "expand",
    "flip", "gather", "index", "index_select", "lift_fresh_copy", "masked_fill", "permute",
    "repeat", "reshape", "roll", "scatter", "select", "slice", "slice_scatter", "sort", "split",
    "split_with_sizes", "squeeze", "stack", "t", "transpose", "unfold", "unsqueeze", "view",
    "where", "_unsafe_view", "amax", "amin", "max", "min", "maximum", "minimum", "bitwise_and",
    "bitwise_or", "bitwise_xor", "topk", "zeros_like",
)  # fmt: skip
"""Ops whose results are in the range of their inputs."""

_CONVERSIONS = ("_to_copy", "convert_element_type")

_torch_library: Any = torch.library  # its functions are half typed
_library = _torch_library.Library("fewbit", "DEF")
_library.define("widen(Tensor x) -> Tensor")
_library.define("narrow(Tensor x, str dtype) -> Tensor")


def widen(x: Tensor) -> Tensor:
    """An unsigned tensor in the type that holds its values."""
    return torch.ops.fewbit.widen(x)


def narrow(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.ops.fewbit.narrow(x, str(dtype).removeprefix("torch."))


@_torch_library.impl(_library, "widen", "CompositeExplicitAutograd")
def _widen(x: Tensor) -> Tensor:
    return x.view(torch.int64) if x.dtype is torch.uint64 else x.to(_HELD[x.dtype])


@_torch_library.impl(_library, "narrow", "CompositeExplicitAutograd")
def _narrow(x: Tensor, dtype: str) -> Tensor:
    return x.view(torch.uint64) if dtype == "uint64" else x.to(_BOUNDARY[dtype])


@_torch_library.register_fake("fewbit::widen")
def _fake_widen(x: Tensor) -> Tensor:
    return torch.empty_like(x, dtype=_HELD[x.dtype])


@_torch_library.register_fake("fewbit::narrow")
def _fake_narrow(x: Tensor, dtype: str) -> Tensor:
    return torch.empty_like(x, dtype=_BOUNDARY[dtype])


@converts(WIDEN)
def emit_widen(emitter: Emitter, node: Node, a: Arguments) -> list[SSAValue]:
    held = tensor_type(node.meta["val"])
    element = cast(IntegerType, held.element_type)
    given = emitter.value(a["x"])
    with ImplicitBuilder(emitter.block):
        result = apply(_signless(given), element, lambda v: _extend(v, element))
    return [result]


@converts(NARROW)
def emit_narrow(emitter: Emitter, node: Node, a: Arguments) -> list[SSAValue]:
    given = tensor_type(node.meta["val"])
    unsigned = given.element_type
    assert isinstance(unsigned, IntegerType)
    element = IntegerType(unsigned.bitwidth)
    value = emitter.value(a["x"])
    with ImplicitBuilder(emitter.block):
        result = apply(value, element, lambda v: _truncate(v, element))
        result = _bitcast(result, given)
    return [result]


def _signless(value: SSAValue) -> SSAValue:
    type = cast("TensorType[Attribute]", value.type)
    element = type.element_type
    assert isinstance(element, IntegerType)
    return _bitcast(value, TensorType(IntegerType(element.bitwidth), type.get_shape()))


def _bitcast(value: SSAValue, type: TensorType[Attribute]) -> SSAValue:
    return BitcastOp(operands=[value], result_types=[type]).dest


def _extend(value: SSAValue, element: IntegerType) -> SSAValue:
    return value if value.type == element else arith.ExtUIOp(value, element).result


def _truncate(value: SSAValue, element: IntegerType) -> SSAValue:
    return value if value.type == element else arith.TruncIOp(value, element).result


def rewrite_unsigned(program: ExportedProgram) -> None:
    """Compute with what holds unsigned tensors, wherever a trace computes with those themselves."""
    graph = program.graph
    concerned = [node for node in graph.nodes if _is_concerned(node)]
    if not concerned:
        return
    mode, held = mode_of(graph), dict[Node, Node]()
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in inputs:
        if _limit(node.meta.get("val")) and any(user in concerned for user in node.users):
            held[node] = Builder(graph, first, mode).call(torch.ops.fewbit.widen.default, node)
    for node in concerned:
        if node.op == "output":
            _narrow_outputs(Builder(graph, node, mode), node, held)
        else:
            _hold(Builder(graph, node, mode), node, held)
    for node in reversed(concerned):
        if node.op != "output" and not node.users:
            graph.erase_node(node)
    rename_outputs(program)


def _is_concerned(node: Node) -> bool:
    """Return whether a node computes with unsigned tensors that are not yet held in others."""
    if node.op == "output":
        return any(_limit(arg.meta.get("val")) and _name(arg) not in (WIDEN, NARROW)
                   for arg in node.all_input_nodes)  # fmt: skip
    if node.op != "call_function" or _name(node) in (WIDEN, NARROW):
        return False
    if not isinstance(node.target, OpOverload) and node.target is not operator.getitem:
        return False
    values = [node.meta.get("val"), *(arg.meta.get("val") for arg in node.all_input_nodes)]
    return any(map(_limit, values))


def _name(node: Node) -> str:
    return name_of(node) if isinstance(node.target, OpOverload) else ""


def _limit(value: Any) -> int | None:
    if isinstance(value, list | tuple):
        return next(filter(None, map(_limit, cast("list[Any]", value))), None)
    return _LIMITS.get(value.dtype) if isinstance(value, Tensor) else None


def _hold(b: Builder, node: Node, held: dict[Node, Node]) -> None:
    value, name = node.meta["val"], _name(node).split("::")[-1]
    args, kwargs = (_held_in(each, held) for each in (node.args, node.kwargs))
    limit = _limit(value)
    if name in _CONVERSIONS:
        result = _convert(b, args[0], value.dtype, limit)
    else:
        result = b.call(node.target, *args, **kwargs)
        moves = name in _MOVES or node.target is operator.getitem
        if limit and isinstance(value, Tensor) and not moves:
            result = b.call(torch.ops.aten.bitwise_and.Scalar, result, limit)
    wanted = _without_sign(value)
    if isinstance(value, Tensor) and result.meta["val"].dtype is not wanted:
        result = b.call(torch.ops.aten._to_copy.default, result, dtype=wanted)
    if limit:
        held[node] = result
    else:
        node.replace_all_uses_with(result)


def _convert(b: Builder, source: Node, dtype: torch.dtype, limit: int | None) -> Node:
    """Floats are truncated before they wrap around."""
    to, wide = torch.ops.aten._to_copy.default, torch.int64
    if limit is None:
        return b.call(to, source, dtype=dtype)
    return b.call(torch.ops.aten.bitwise_and.Scalar, b.call(to, source, dtype=wide), limit)


def _held_in(value: Any, held: dict[Node, Node]) -> Any:
    """Arguments with unsigned nodes and types replaced by what holds them."""

    def chosen(each: Any) -> Any:
        return held.get(each, each) if isinstance(each, Node) else _without_sign(each)

    return tree_map(chosen, value)


def _without_sign(value: Any) -> Any:
    """The type of a tensor, or anything else as it is; for an unsigned type, what holds it."""
    dtype = value.dtype if isinstance(value, Tensor) else value
    return _HELD[dtype] if isinstance(dtype, torch.dtype) and dtype in _LIMITS else dtype


def _narrow_outputs(b: Builder, node: Node, held: dict[Node, Node]) -> None:
    def narrow(value: Any) -> Any:
        if not isinstance(value, Node) or value not in held:
            return value
        name = str(value.meta["val"].dtype).removeprefix("torch.")
        return b.call(torch.ops.fewbit.narrow.default, held[value], name)

    node.args = (tree_map(narrow, node.args[0]),)
