"""From ops to loop nests; each op of a module becomes a nest, or is listed with the reason why not.

Ops are read in generic form, after `linalg-generalize-named-ops`. Bodies are not evaluated: it
matters which ops they have, and which of those multiply and add to what comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    TensorType,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fewbit.cost.loops.nest import Access, Index, Kind, Loop, LoopNest, Role
from fewbit.ir.locations import place_of

UNKNOWN_EXTENT = 1
"""The extent that stands for dynamic sizes."""
WITHOUT_WORK = frozenset({"linalg.yield", "linalg.index", "iree_linalg_ext.yield"})
COPIES = frozenset({"linalg.pack", "linalg.unpack", "iree_linalg_ext.map_store"})
"""Ops that move each element of their first operand to some place in what they write."""
NO_LOOPS = re.compile(r"iree_linalg_ext\.|tm_tensor\.|linalg\.(?!generic$)")
_TENSOR = re.compile(r"(?:tensor|memref)<((?:\d+x|\?x)*)([^,>]+)")


@dataclass(frozen=True)
class Unmodelled:
    op: str
    layer: str | None
    reason: str


@dataclass(frozen=True)
class Listing:
    """All ops of a module that loop over tensors."""

    nests: tuple[LoopNest, ...]
    unmodelled: tuple[Unmodelled, ...]


def list_nests(module: ModuleOp, dynamic: int = UNKNOWN_EXTENT) -> Listing:
    """Return the loop nests of a module, in order; dynamic sizes count as `dynamic`."""
    nests: list[LoopNest] = []
    others: list[Unmodelled] = []
    for op in loop_ops(module):
        nest = read_nest(op, dynamic)
        (nests if isinstance(nest, LoopNest) else others).append(nest)  # pyright: ignore
    return Listing(tuple(nests), tuple(others))


def loop_ops(module: ModuleOp) -> Iterator[Operation]:
    """Yield ops that stand for loops over tensors, with a body of linalg or without."""
    for op in module.walk():
        name = name_of(op)
        if name in WITHOUT_WORK or not (name == "linalg.generic" or NO_LOOPS.match(name)):
            continue
        yield op


def name_of(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """Return an attribute, wherever the op keeps it."""
    return op.properties.get(name, op.attributes.get(name))


def read_nest(op: Operation, dynamic: int = UNKNOWN_EXTENT) -> LoopNest | Unmodelled:
    """Return an op as a nest, or the reason why it is not one."""
    name, layer = name_of(op), place_of(op).layer
    try:
        if name in COPIES:
            return _copy(op, name, layer, dynamic)
        maps, kinds = _maps_of(op), _kinds_of(op)
        nest = _nest(op, name, layer, maps, kinds, dynamic)
    except UnreadableError as e:
        return Unmodelled(name, layer, str(e))
    return nest


class UnreadableError(Exception):
    """The reason why an op is not a nest."""


def _nest(
    op: Operation,
    name: str,
    layer: str | None,
    maps: list[AffineMap],
    kinds: list[Kind],
    dynamic: int,
) -> LoopNest:
    types = [_tensor_of(value.type) for value in op.operands]
    if len(maps) != len(types):
        raise UnreadableError(f"{len(types)} operands have {len(maps)} maps")
    extents: list[int | None] = [None] * len(kinds)
    unknown: set[int] = set()
    for map, (shape, _, _) in zip(maps, types, strict=True):
        for expr, size in zip(map.results, shape, strict=True):
            if isinstance(expr, AffineDimExpr):
                if size is None:
                    unknown.add(expr.position)
                elif extents[expr.position] is None:
                    extents[expr.position] = size
    _solve_windows(maps, [shape for shape, _, _ in types], extents, unknown)
    loops = tuple(
        Loop(dynamic if extent is None else extent, kind, extent is None)
        for extent, kind in zip(extents, kinds, strict=True)
    )
    body = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
    if body is None:
        raise UnreadableError("it has no body")
    outputs = len(op.results) or _count_outputs(op)
    accesses = tuple(
        _access("output" if i >= len(types) - outputs else "input", map, type, loops)
        for i, (map, type) in enumerate(zip(maps, types, strict=True))
    )
    used = [
        access
        for access, argument in zip(accesses, body.args, strict=True)
        if access.role == "output" or argument.uses.get_length()
    ]
    ops = tuple(name_of(inner) for inner in body.walk())
    return LoopNest(name, loops, tuple(used), ops, _count_multiply_adds(body, outputs), layer)


def _copy(op: Operation, name: str, layer: str | None, dynamic: int) -> LoopNest:
    """Return a nest over what is read; where it is written is not affine."""
    source, target = (_tensor_of(op.operands[i].type) for i in (0, 1))
    loops = tuple(Loop(dynamic if s is None else s, "parallel", s is None) for s in source[0])
    map = AffineMap.identity(len(loops))
    shape = tuple(UNKNOWN_EXTENT if s is None else s for s in target[0])
    written = Access("output", target[1], target[2], shape, None)
    return LoopNest(name, loops, (_access("input", map, source, loops), written), (), 0, layer)


def _count_outputs(op: Operation) -> int:
    segments = attribute_of(op, "operandSegmentSizes")
    values = getattr(segments, "get_values", lambda: (0, 1))()
    return int(values[1])


def _maps_of(op: Operation) -> list[AffineMap]:
    attribute = attribute_of(op, "indexing_maps")
    if not isinstance(attribute, ArrayAttr):
        raise UnreadableError("its definition has no loops: it is one step of its own")
    maps: list[AffineMap] = []
    for map in cast("Any", attribute).data:
        if not isinstance(map, AffineMapAttr):
            raise UnreadableError("its indices are no affine maps")
        maps.append(map.data)
    return maps


def _kinds_of(op: Operation) -> list[Kind]:
    attribute = attribute_of(op, "iterator_types")
    if not isinstance(attribute, ArrayAttr):
        raise UnreadableError("its definition does not say which loops are sums")
    texts = [str(kind) for kind in cast("Any", attribute).data]
    for text in texts:
        if "parallel" not in text and "reduction" not in text:
            raise UnreadableError(f"a loop is neither parallel nor a reduction: {text}")
    return ["parallel" if "parallel" in text else "reduction" for text in texts]


def _tensor_of(type: Attribute) -> tuple[tuple[int | None, ...], str, int]:
    """Return the shape, element type and width of a type; a scalar has no shape."""
    element: Any = type
    shape: tuple[int | None, ...] = ()
    if isinstance(type, TensorType | MemRefType):
        sizes: Any = type.get_shape()  # pyright: ignore[reportUnknownMemberType]
        shape = tuple(None if s < 0 else int(s) for s in sizes)
        element = cast("Any", type).element_type
    elif match := _TENSOR.search(str(type)):
        shape = tuple(None if s == "?" else int(s) for s in match[1].split("x") if s)
        return shape, match[2].strip(), bits_of(match[2].strip())
    return shape, str(element), 64 if isinstance(element, IndexType) else bits_of(str(element))


def bits_of(element: str) -> int:
    """Return the width of an element type in bits."""
    if element in ("index", "!mico.ternary"):
        return 64 if element == "index" else 2
    number = re.search(r"(\d+)", element.removeprefix("f8E"))
    if element.startswith("f8E"):
        return 8
    width = int(number[1]) if number else 0
    if not width:
        raise UnreadableError(f"elements of type {element} have no width")
    return 2 * width if element.startswith("complex") else width


def _solve_windows(
    maps: list[AffineMap],
    shapes: list[tuple[int | None, ...]],
    extents: list[int | None],
    unknown: set[int],
) -> None:
    """Infer the extents of loops that occur only in sums, from the operand's size."""
    for map, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(map.results, shape, strict=True):
            index = _linear(expr, len(extents))
            if index is None or size is None:
                continue
            open_loops = [i for i in index.loops if extents[i] is None and i not in unknown]
            if len(open_loops) == 1:
                loop = open_loops[0]
                known = sum(
                    c * ((extents[i] or 1) - 1)
                    for i, c in enumerate(index.coefficients)
                    if i != loop
                )
                step = index.coefficients[loop]
                if step > 0:
                    extents[loop] = (size - 1 - index.constant - known) // step + 1


def _access(
    role: Role,
    map: AffineMap,
    type: tuple[tuple[int | None, ...], str, int],
    loops: tuple[Loop, ...],
) -> Access:
    shape, element, bits = type
    indices = [_linear(expr, len(loops)) for expr in map.results]
    extents = tuple(loop.extent for loop in loops)
    sizes = tuple(
        size if size is not None else (index.span(extents) if index else UNKNOWN_EXTENT)
        for size, index in zip(shape, indices, strict=True)
    )
    linear = tuple(index for index in indices if index is not None)
    return Access(role, element, bits, sizes, linear if len(linear) == len(indices) else None)


def _linear(expr: AffineExpr, loops: int) -> Index | None:
    """Return a sum of loops times constants; None for anything else."""
    if isinstance(expr, AffineConstantExpr):
        return Index((0,) * loops, expr.value)
    if isinstance(expr, AffineDimExpr):
        return Index(tuple(int(i == expr.position) for i in range(loops)))
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    left, right = _linear(expr.lhs, loops), _linear(expr.rhs, loops)
    if left is None or right is None:
        return None
    if expr.kind is AffineBinaryOpKind.Add:
        pairs = zip(left.coefficients, right.coefficients, strict=True)
        return Index(tuple(a + b for a, b in pairs), left.constant + right.constant)
    if expr.kind is not AffineBinaryOpKind.Mul or (left.loops and right.loops):
        return None
    scaled, factor = (left, right.constant) if left.loops else (right, left.constant)
    return Index(tuple(c * factor for c in scaled.coefficients), scaled.constant * factor)


def _count_multiply_adds(body: Block, outputs: int) -> int:
    """Count the multiply-adds that accumulate into an output."""
    sums = set(body.args[len(body.args) - outputs :])
    count = 0
    for op in body.ops:
        if name_of(op) == "math.fma" and op.operands[2] in sums:
            count += 1
        if not name_of(op).startswith(("arith.addf", "arith.addi", "arith.subi", "arith.subf")):
            continue
        if any(value in sums for value in op.operands) and any(
            _is_product(value) for value in op.operands
        ):
            count += 1
    return count


def _is_product(value: SSAValue) -> bool:
    """Return whether a value is a multiplication, perhaps cast since."""
    while not isinstance(value, BlockArgument):
        op: Any = value.owner
        if name_of(op) in ("arith.mulf", "arith.muli"):
            return True
        if len(op.operands) != 1:
            return False
        value = op.operands[0]
    return False
