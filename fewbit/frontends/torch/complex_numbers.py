"""Complex tensors as pairs of real ones.

A trace with complex values is rewritten: each such value becomes two, and each op on them the
arithmetic that defines it. What only moves elements moves both parts. `fourier` has the transforms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from fewbit.decompositions.fourier import (
    Pair,
    transform_complex,
    transform_real,
    transform_to_real,
)
from fewbit.decompositions.rebuild import Builder, mode_of, rename_outputs
from fewbit.decompositions.sizes import is_static
from fewbit.frontends.torch.aten import name_of
from fewbit.frontends.torch.islands import unsupported_beside, unsupported_error

aten = torch.ops.aten

PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}

_MOVES = (
    "alias", "cat", "clone", "constant_pad_nd", "detach", "diagonal", "expand", "flip", "gather",
    "index", "index_select", "masked_fill", "movedim", "narrow", "permute", "reshape", "roll",
    "select", "slice", "slice_scatter", "split", "split_with_sizes", "squeeze", "stack", "t",
    "transpose", "unfold", "unsqueeze", "view", "where", "_unsafe_view", "sum", "mean", "neg",
    "zeros_like", "index_put", "copy", "lift_fresh_copy", "contiguous", "repeat",
)  # fmt: skip
"""Ops that do the same with each part."""

CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def rewrite_complex(program: ExportedProgram) -> None:
    """Replace all complex values of a trace by pairs of real ones; refuse what has no rule."""
    graph = program.graph
    nodes = [node for node in graph.nodes if node.op == "call_function" and _is_concerned(node)]
    if not nodes:
        return
    mode = mode_of(graph)
    pairs = _constants(program, nodes[0], mode)
    unknown, behind = list[Node](), set[Node]()
    for node in nodes:
        if behind.intersection(node.all_input_nodes):
            behind.add(node)
            continue
        replaced = _replace(Builder(graph, node, mode), node, pairs)
        if replaced is None:
            unknown.append(node)
            behind.add(node)
        elif _has_complex(node.meta.get("val")):
            pairs[node] = replaced
        else:
            node.replace_all_uses_with(cast(Node, replaced))
    if unknown:
        raise unsupported_error([*unknown, *unsupported_beside([*pairs, *behind], graph)])
    for node in reversed(nodes):
        if not node.users:
            graph.erase_node(node)
    rename_outputs(program)


def _constants(program: ExportedProgram, first: Node, mode: Any) -> dict[Node, Any]:
    """Complex parameters and buffers, from here on held as real tensors with a dimension more."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    pairs: dict[Node, Any] = {}
    for spec in program.graph_signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind not in CONSTANTS or not _has_complex(node.meta.get("val")):
            continue
        for held in cast("list[dict[Any, Any]]", [program.state_dict, program.constants]):
            if spec.target in held:
                held[spec.target] = _as_real(held[spec.target])
        with mode:
            node.meta = {"val": _as_real(node.meta["val"])}
        b = Builder(program.graph, first, mode)
        pairs[node] = b.call(aten.select.int, node, -1, 0), b.call(aten.select.int, node, -1, 1)
    return pairs


def _as_real(tensor: Any) -> Any:
    return torch.view_as_real(tensor.detach().resolve_conj())


def _is_concerned(node: Node) -> bool:
    values = [node.meta.get("val"), *(arg.meta.get("val") for arg in node.all_input_nodes)]
    return any(map(_has_complex, values))


def _has_complex(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_complex, cast("Sequence[Any]", value)))
    return isinstance(value, torch.Tensor) and value.dtype in PARTS


def _replace(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    name = _name(node)
    if name == "getitem":
        source, index = cast("tuple[Node, int]", node.args)
        return tuple(b.call(node.target, part, index) for part in pairs[source])
    if name in HANDLERS:
        return HANDLERS[name](b, node, pairs)
    if name in _MOVES:
        return tuple(_with_parts(b, node, pairs, part) for part in range(2))
    return None


def _name(node: Node) -> str:
    if node.target is operator.getitem:
        return "getitem"
    return name_of(node).split("::")[-1] if isinstance(node.target, OpOverload) else ""


def _with_parts(b: Builder, node: Node, pairs: dict[Node, Any], part: int) -> Node:
    """The op, done with one part of each complex input; a real one is its own real part."""

    def chosen(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [chosen(each) for each in cast("Sequence[Any]", value)]
        if isinstance(value, complex):
            return value.imag if part else value.real
        return pairs[value][part] if isinstance(value, Node) and value in pairs else value

    kwargs = {k: chosen(v) for k, v in node.kwargs.items()}
    if kwargs.get("dtype") in PARTS:
        kwargs["dtype"] = PARTS[kwargs["dtype"]]
    return b.call(node.target, *chosen(node.args), **kwargs)


def _pair(b: Builder, value: Any, pairs: dict[Node, Any], part_type: torch.dtype) -> Any:
    """Both parts of an operand; numbers of Python stay such."""
    if isinstance(value, complex):
        return value.real, value.imag
    if not isinstance(value, Node):
        return value, 0.0
    if value in pairs:
        return pairs[value]
    real = b.call(aten._to_copy.default, value, dtype=part_type)
    return real, 0.0


def _part_type(node: Node) -> torch.dtype:
    values = [node.meta["val"], *(arg.meta["val"] for arg in node.all_input_nodes)]
    return next(PARTS[v.dtype] for v in values if isinstance(v, torch.Tensor) and v.dtype in PARTS)


def _operands(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    kind = _part_type(node)
    return tuple(_pair(b, value, pairs, kind) for value in node.args[:2])


def _full(b: Builder, value: Any, like: Node) -> Node:
    if isinstance(value, Node):
        return value
    return b.call(aten.full_like.default, like, value)


def _add_numbers(b: Builder, x: Any, y: Any, sign: int = 1) -> Any:
    if not isinstance(x, Node) and not isinstance(y, Node):
        return x + sign * y
    if not isinstance(y, Node) and y == 0:
        return x
    if not isinstance(x, Node):
        return b.call(aten.add.Tensor, b.call(aten.mul.Tensor, y, sign), x)
    if not isinstance(y, Node):
        return b.call(aten.add.Tensor, x, sign * y)
    return b.call(aten.add.Tensor if sign > 0 else aten.sub.Tensor, x, y)


def _times(b: Builder, x: Any, y: Any) -> Any:
    """A product; of the number 0 it is that, as no part stands for it."""
    if not isinstance(x, Node):
        x, y = y, x
    if not isinstance(x, Node):
        return x * y
    if not isinstance(y, Node) and y == 0:
        return 0.0
    return b.call(aten.mul.Tensor, x, y)


def _add(sign: int) -> Callable[..., Any]:
    def add(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
        (a, c), (d, e) = _operands(b, node, pairs)
        alpha = node.kwargs.get("alpha", 1)
        real = _add_numbers(b, a, _times(b, d, alpha), sign)
        imaginary = _add_numbers(b, c, _times(b, e, alpha), sign)
        return _shape(b, node, real, imaginary)

    return add


def _shape(b: Builder, node: Node, real: Any, imaginary: Any) -> Pair:
    """Both parts as tensors of the result's shape."""
    shape = [int(size) if is_static(size) else -1 for size in node.meta["val"].shape]
    like = real if isinstance(real, Node) else imaginary
    parts = [_full(b, part, like) for part in (real, imaginary)]
    if -1 not in shape:
        parts = [
            part
            if list(part.meta["val"].shape) == shape
            else b.call(aten.expand.default, part, shape)
            for part in parts
        ]
    return parts[0], parts[1]


def _multiply(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    return _shape(b, node, *_product(b, *_operands(b, node, pairs)))


def _product(b: Builder, x: Any, y: Any) -> Any:
    (a, c), (d, e) = x, y
    real = _add_numbers(b, _times(b, a, d), _times(b, c, e), -1)
    return real, _add_numbers(b, _times(b, a, e), _times(b, c, d))


def _divide(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    (a, c), (d, e) = _operands(b, node, pairs)
    if not isinstance(e, Node) and e == 0:
        return _shape(b, node, *(b.call(aten.div.Tensor, part, d) for part in (a, c)))
    size = _add_numbers(b, _times(b, d, d), _times(b, e, e))
    real = _add_numbers(b, _times(b, a, d), _times(b, c, e))
    imaginary = _add_numbers(b, _times(b, c, d), _times(b, a, e), -1)
    return _shape(
        b, node, *(b.call(aten.div.Tensor, _full(b, p, size), size) for p in (real, imaginary))
    )


def _power(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    """A small whole power, as products."""
    exponent = node.args[1]
    if not isinstance(exponent, int | float) or exponent not in range(1, 9):
        return None
    base = pairs[cast(Node, node.args[0])]
    result = base
    for _ in range(int(exponent) - 1):
        result = _product(b, result, base)
    return result


def _conjugate(b: Builder, node: Node, pairs: dict[Node, Any]) -> Pair:
    real, imaginary = pairs[cast(Node, node.args[0])]
    return real, b.call(aten.neg.default, imaginary)


def _absolute(b: Builder, node: Node, pairs: dict[Node, Any]) -> Node:
    """Divide by the larger part, so that no square overflows."""
    x, y = (b.call(aten.abs.default, part) for part in pairs[cast(Node, node.args[0])])
    large, small = b.call(aten.maximum.default, x, y), b.call(aten.minimum.default, x, y)
    one = b.call(aten.full_like.default, large, 1.0)
    is_zero = b.call(aten.eq.Scalar, large, 0.0)
    ratio = b.call(aten.div.Tensor, small, b.call(aten.where.self, is_zero, one, large))
    square = b.call(aten.add.Tensor, b.call(aten.mul.Tensor, ratio, ratio), 1.0)
    return b.call(aten.mul.Tensor, large, b.call(aten.sqrt.default, square))


def _angle(b: Builder, node: Node, pairs: dict[Node, Any]) -> Node:
    real, imaginary = pairs[cast(Node, node.args[0])]
    return b.call(aten.atan2.default, imaginary, real)


def _view_as_real(b: Builder, node: Node, pairs: dict[Node, Any]) -> Node:
    parts = pairs[cast(Node, node.args[0])]
    return b.call(aten.cat.default, [b.call(aten.unsqueeze.default, p, -1) for p in parts], -1)


def _view_as_complex(b: Builder, node: Node, pairs: dict[Node, Any]) -> Pair:
    x = cast(Node, node.args[0])
    return b.call(aten.select.int, x, -1, 0), b.call(aten.select.int, x, -1, 1)


def _part(index: int) -> Callable[..., Node]:
    def part(b: Builder, node: Node, pairs: dict[Node, Any]) -> Node:
        return pairs[cast(Node, node.args[0])][index]

    return part


def _complex(b: Builder, node: Node, pairs: dict[Node, Any]) -> Pair:
    real, imaginary = cast("tuple[Node, Node]", node.args)
    return _shape(b, node, real, imaginary)


def _polar(b: Builder, node: Node, pairs: dict[Node, Any]) -> Pair:
    size, angle = cast("tuple[Node, Node]", node.args)
    cosine, sine = b.call(aten.cos.default, angle), b.call(aten.sin.default, angle)
    return b.call(aten.mul.Tensor, size, cosine), b.call(aten.mul.Tensor, size, sine)


def _exponential(b: Builder, node: Node, pairs: dict[Node, Any]) -> Pair:
    real, imaginary = pairs[cast(Node, node.args[0])]
    size = b.call(aten.exp.default, real)
    cosine, sine = b.call(aten.cos.default, imaginary), b.call(aten.sin.default, imaginary)
    return b.call(aten.mul.Tensor, size, cosine), b.call(aten.mul.Tensor, size, sine)


def _convert(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    source = cast(Node, node.args[0])
    value = node.meta["val"]
    if value.dtype not in PARTS:
        return b.call(aten._to_copy.default, pairs[source][0], dtype=value.dtype)
    kind = PARTS[value.dtype]
    if source not in pairs:
        real = b.call(aten._to_copy.default, source, dtype=kind)
        return real, b.call(aten.full_like.default, real, 0.0)
    return tuple(b.call(aten._to_copy.default, part, dtype=kind) for part in pairs[source])


def _fill(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    size, value = cast("tuple[Any, Any]", node.args)
    kind = PARTS[node.meta["val"].dtype]
    numbers = (complex(value).real, complex(value).imag)
    return tuple(b.call(aten.full.default, size, number, dtype=kind) for number in numbers)


def _matmul(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    (a, c), (d, e) = _operands(b, node, pairs)

    def product(x: Any, y: Any) -> Any:
        is_zero = not isinstance(x, Node) or not isinstance(y, Node)
        return 0.0 if is_zero else b.call(node.target, x, y)

    real = _add_numbers(b, product(a, d), product(c, e), -1)
    imaginary = _add_numbers(b, product(a, e), product(c, d))
    return _shape(b, node, real, imaginary)


HANDLERS: dict[str, Callable[..., Any]] = {
    "add": _add(1),
    "sub": _add(-1),
    "mul": _multiply,
    "div": _divide,
    "pow": _power,
    "mm": _matmul,
    "bmm": _matmul,
    "matmul": _matmul,
    "_conj": _conjugate,
    "_conj_physical": _conjugate,
    "conj_physical": _conjugate,
    "abs": _absolute,
    "angle": _angle,
    "exp": _exponential,
    "complex": _complex,
    "polar": _polar,
    "real": _part(0),
    "imag": _part(1),
    "view_as_real": _view_as_real,
    "view_as_complex": _view_as_complex,
    "_to_copy": _convert,
    "convert_element_type": _convert,
    "full": _fill,
    "_fft_r2c": transform_real,
    "_fft_c2c": transform_complex,
    "_fft_c2r": transform_to_real,
}
