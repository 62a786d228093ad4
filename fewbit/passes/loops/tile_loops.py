"""Loop nests that no kernel computes, in tiles.

Tiles are made where the nest is still one linalg op, by upstream's transform dialect: loops change
places, tiles become views, and blocks that are transposed become vectors. Where a nest reads at
indices that linalg cannot cut into views (`i floordiv 2`), its affine loops are tiled. Sizes and
order are chosen in `tile_sizes.py`. Loops that threads share count tiles, which stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import PassError, Place
from fewbit.ir.bindings import (
    find_function,
    index_constant,
    loop_kinds,
    mlir_context,
    parse_mlir,
    run_upstream,
    walk,
)
from fewbit.passes import pipelines
from fewbit.passes.loops.outline_loops import Outlined, outlined_of
from fewbit.passes.loops.tile_sizes import Access, Kind, Nest, Tiling, affine_tiles, choose_tiling
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, OpView, Value

WHOLE = "tile.whole"
"""Marks the op that computes blocks, without those at the edges that are smaller."""
FAR = 1 << 16
"""A stride that is not known."""
PLAIN = ("f32", "f64", "i8", "i16", "i32", "i64")
"""Elements that lie in memory as they do in vectors."""


@dataclass(frozen=True)
class TileLoops(BindingsPass):
    """Tile loop nests that transpose, or sum across rows."""

    name = "tile-loops"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        tile_loops(module)


def tile_loops(module: Module, levels: Sequence[str] = pipelines.CPU_TILING) -> None:
    """Tile functions that hold one nest each, in place, and note which loop is to be shared."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        for each in outlined_of(module):
            function = find_function(module, each.name)
            _tile(function, each, levels).write(function)


def _tile(function: Any, outlined: Outlined, levels: Sequence[str]) -> Outlined:
    ops = [op for op in walk(function) if op.operation.name.startswith("linalg.")]
    if sum(op.operation.name == "linalg.generic" for op in ops) != 1:
        return outlined
    nest = nest_of(next(op for op in ops if op.operation.name == "linalg.generic"))
    if "linalg" in levels and nest.linear:
        tiling = choose_tiling(nest)
        if tiling is None:
            return outlined
        _tile_linalg(function, tiling)
        return replace(outlined, split=None if outlined.split is None else tiling.shared)
    sizes = affine_tiles(nest) if "affine" in levels else None
    if sizes is not None:
        tiles = ",".join(map(str, sizes))
        _run(function, [each.format(tiles=tiles) for each in pipelines.CPU_TILED_AFFINE])
    return outlined


def nest_of(op: OpView) -> Nest:
    """Return what the choice of tile sizes depends on."""
    from torch_mlir import ir

    kinds = cast(list[Kind], loop_kinds(op))
    sizes: list[int | None] = [None] * len(kinds)
    accesses: list[Access] = []
    linear = True
    for map, value in zip(op.operation.attributes["indexing_maps"], op.operands, strict=True):
        strides = [0] * len(kinds)
        results = ir.AffineMapAttr(map).value.results
        for axis, result in enumerate(results):
            linear &= _is_linear(result)
            step, size = _axis(value, axis)
            for loop, times in _loops_in(result):
                strides[loop] += times * step
            if isinstance(result, ir.AffineDimExpr) and size is not None:
                sizes[result.position] = size
        accesses.append(Access(tuple(strides), _bytes(value)))
    inputs = len(op.inputs)
    return Nest(
        kinds=tuple(kinds),
        sizes=tuple(sizes),
        reads=tuple(accesses[:inputs]),
        writes=tuple(accesses[inputs:]),
        floats=any(_element(value).startswith(("f", "bf")) for value in op.outputs),
        plain=_is_plain(op),
        linear=linear,
    )


def _axis(value: Value, axis: int) -> tuple[int, int | None]:
    """Return how far the next index of an axis is, in elements, and the size of the axis."""
    from torch_mlir import ir

    type = ir.MemRefType(value.type)
    stride = type.get_strides_and_offset()[0][axis]
    size = None if type.is_dynamic_dim(axis) else type.get_dim_size(axis)
    return (stride if type.is_static_stride_or_offset(stride) else FAR), size


def _is_linear(expr: Any) -> bool:
    from torch_mlir import ir

    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return _is_linear(expr.lhs) and _is_linear(expr.rhs)
    return isinstance(expr, ir.AffineDimExpr | ir.AffineConstantExpr)


def _loops_in(expr: Any, times: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the loops that an index depends on, each with its factor."""
    from torch_mlir import ir

    if isinstance(expr, ir.AffineDimExpr):
        yield expr.position, times
    elif isinstance(expr, ir.AffineMulExpr) and isinstance(expr.rhs, ir.AffineConstantExpr):
        yield from _loops_in(expr.lhs, times * abs(expr.rhs.value))
    elif isinstance(expr, ir.AffineAddExpr):
        yield from _loops_in(expr.lhs, times)
        yield from _loops_in(expr.rhs, times)
    elif isinstance(expr, ir.AffineBinaryExpr):
        # A quotient or a remainder moves on in jumps.
        yield from _loops_in(expr.lhs, FAR)


def _element(value: Value) -> str:
    from torch_mlir import ir

    type = value.type
    return str(type.element_type if isinstance(type, ir.MemRefType) else type)


def _bytes(value: Value) -> int:
    digits = "".join(filter(str.isdigit, _element(value)))
    return max(int(digits or 64) // 8, 1)


def _is_plain(op: OpView) -> bool:
    body = op.operation.regions[0].blocks[0].operations
    names = {inner.operation.name for inner in body} - {"linalg.yield"}
    return (
        all(name.startswith("arith.") for name in names)
        and all(_element(value) in PLAIN for value in op.operands)
        and all(map(_is_permutation, op.operation.attributes["indexing_maps"]))
    )


def _is_permutation(map: Any) -> bool:
    """Return whether each dimension goes with a loop of its own, as those of vectors do."""
    from torch_mlir import ir

    results = ir.AffineMapAttr(map).value.results
    loops = {result.position for result in results if isinstance(result, ir.AffineDimExpr)}
    return len(loops) == len(results)


def _tile_linalg(function: Any, tiling: Tiling) -> None:
    _transform(function, _tile_sequence(tiling))
    _count_tiles(function, 0 if tiling.shared is None else tiling.shared + 1)
    _run(function, pipelines.CPU_TILED_LINALG)
    if tiling.blocks:
        for op in walk(function):
            if op.operation.name == "linalg.generic" and nest_of(op).sizes == tiling.blocks:
                _mark(op)
        _transform(function, _vectorize_sequence())
    _run(function, pipelines.CPU_TILED_LOOPS)


def _tile_sequence(tiling: Tiling) -> str:
    lines = [
        '%nest = transform.structured.match ops{["linalg.generic"]} in %function : (!op) -> !op',
        "%level0 = transform.structured.interchange %nest"
        f" iterator_interchange = {list(tiling.order)} : (!op) -> !op",
    ]
    for level, sizes in enumerate(filter(None, (tiling.tiles, tiling.blocks))):
        loops = sum(size > 0 for size in sizes)
        results = ", ".join(["!op"] * (1 + loops))
        lines.append(
            f"%level{level + 1}, %loops{level}:{loops} = transform.structured.tile_using_for"
            f" %level{level} tile_sizes {list(sizes)} : (!op) -> ({results})"
        )
    return "\n".join(lines)


PATTERNS = (
    "rank_reducing_subview_patterns",
    "drop_unit_dims_with_shape_cast",
    "transfer_permutation_patterns",
    "lower_transpose lowering_strategy = shuffle_1d",
    "transfer_to_scf max_transfer_rank = 1 full_unroll = true",
    "lower_transfer max_transfer_rank = 1",
    "lower_shape_cast",
)
"""From blocks as vectors to rows that are loaded, shuffled and stored.

One after another: together, some undo and redo each other's work without an end.
"""


def _vectorize_sequence() -> str:
    lines = [
        f'%whole = transform.structured.match ops{{["linalg.generic"]}} attributes{{{WHOLE}}}'
        " in %function : (!op) -> !op",
        "transform.structured.vectorize %whole : !op",
    ]
    for pattern in PATTERNS:
        apply = f"transform.apply_patterns.vector.{pattern}"
        lines.append(f"transform.apply_patterns to %function {{ {apply} }} : !op")
    return "\n".join(lines)


def _transform(function: Any, sequence: str) -> None:
    """Run a sequence of ops of the transform dialect on `%function`."""
    from torch_mlir.dialects.transform import interpreter

    script = parse_mlir(
        "!op = !transform.any_op\n"
        "module attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @tile(%function: !op {transform.readonly}) {\n"
        f"{sequence}\ntransform.yield\n}}\n}}"
    )
    try:
        interpreter.apply_named_sequence(
            function.operation, script.body.operations[0].operation, script.operation
        )
    except ValueError as e:
        raise PassError(f"a loop nest cannot be tiled: {e}", place=Place(stage="tile-loops")) from e


def _mark(op: OpView) -> None:
    from torch_mlir import ir

    op.operation.attributes[WHOLE] = ir.UnitAttr.get()


def _count_tiles(function: Any, loops: int) -> None:
    """Make the outermost loops count tiles in place of elements.

    Threads then share whole tiles, and these loops need no second loop for a remainder.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    block = function.entry_block
    for _ in range(loops):
        loop = next(op for op in block.operations if op.operation.name == "scf.for")
        block = loop.body
        number = block.arguments[0]
        _, end, step = loop.operation.operands
        with ir.InsertionPoint(loop):
            count = arith.CeilDivUIOp(end, step).result
            one = index_constant(1)
        with ir.InsertionPoint.at_block_begin(block):
            first = arith.MulIOp(number, step)
        number.replace_all_uses_except(first.result, [first.operation])
        loop.operation.operands[1] = count
        loop.operation.operands[2] = one


def _run(function: Any, passes: Sequence[str]) -> None:
    run_upstream(function, ",".join(passes), "func.func")
