"""Few-bit constants as packed bytes, unpacked in the program by shifts and masks.

A field is moved to the top of its word and back to the bottom, which extends its sign. A word is
one byte where fields divide it; fields of 3, 5, 6 and 7 bits run on across bytes, and there the
smallest number of bytes that holds whole fields is joined to words of 32 bits first: 3 bytes for 3
and 6 bits are one, and 5 for 5 and 7 for 7 are two that overlap, of the first 4 bytes and of the
last. No word has 64 bits: not all GPUs compute with them. Bytes of the weight store stay as they
are stored, unsigned, so that their hash still holds; those in the text become i8.

A table of which single elements are looked up, such as an embedding, is not unpacked: each lookup
takes its field out of the one or two bytes that hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    UnrealizedConversionCastOp,
    i8,
    i32,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects import mico
from fewbit.dialects.upstream.tensor import BitcastOp
from fewbit.ir.symbols import SymbolTable, using
from fewbit.numerics.packing import row_bytes
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import generic, loops, read
from fewbit.passes.linalg.building.tensors import (
    as_type,
    collapse,
    expand_axis,
    index_constant,
    pad,
)

UI8 = IntegerType(8, Signedness.UNSIGNED)
WORD = 4
"""Bytes of the largest word."""


@dataclass(frozen=True)
class UnpackWeights(ModulePass):
    """Keep few-bit constants as packed bytes, and unpack them where they are read."""

    name = "unpack-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using(SymbolTable(op)):
            for inner in list(op.walk()):
                if isinstance(inner, mico.GetConstantOp):
                    _look_up(inner)
            lower_ops(op, {mico.GetConstantOp: _get_constant})
        for constant in list(op.ops):
            if isinstance(constant, mico.ConstantOp) and mico.element_width(constant.type):
                _pack(constant)


def packed_type(constant: mico.ConstantOp) -> TensorType[IntegerType]:
    """Return rows of bytes; unsigned where they are in the weight store."""
    shape, width = mico.shape_of(constant.type), mico.element_width(constant.type)
    assert width is not None
    rows, k = _matrix(shape)
    element = UI8 if isinstance(constant.value, mico.RefAttr) else i8
    return TensorType(element, [rows, row_bytes(k, width)])


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Return the number of rows of a weight, and the elements of one."""
    return (shape[0], prod(shape[1:])) if shape else (1, 1)


def _pack(constant: mico.ConstantOp) -> None:
    type, value = packed_type(constant), constant.value
    if isinstance(value, mico.PackedAttr):
        value = DenseIntOrFPElementsAttr(type, BytesAttr(value.data))
    constant.properties |= {"type": type, "value": value}
    for part in ("scale", "zero_point", "offset"):
        constant.properties.pop(part, None)


def _get_constant(op: mico.GetConstantOp) -> Sequence[SSAValue] | None:
    width = mico.element_width(op.result.type)
    if width is None:
        return None
    shape = mico.shape_of(op.result.type)
    rows = unpack(_packed_bytes(op), width, _matrix(shape)[1])
    if len(shape) < 2:
        return [as_type(collapse(rows, [[0, 1]] if shape else []), op.result.type)]
    return [as_type(expand_axis(rows, 1, shape[1:]), op.result.type)]


def _packed_bytes(op: mico.GetConstantOp) -> SSAValue:
    """Return the constant's bytes, as i8."""
    packed: SSAValue = mico.GetConstantOp(op.symbol, packed_type(op.constant)).result
    if mico.element_type(packed.type) == i8:
        return packed
    plain = TensorType(i8, mico.shape_of(packed.type))
    return BitcastOp(operands=[packed], result_types=[plain]).dest


def _look_up(op: mico.GetConstantOp) -> None:
    """Extract fields of packed bytes where only single elements of a matrix are read."""
    width, shape = mico.element_width(op.result.type), mico.shape_of(op.result.type)
    if width is None or width.bits == 8 or len(shape) != 2:
        return
    casts = [use.operation for use in op.result.uses]
    lookups = [use.operation for cast in casts for result in cast.results for use in result.uses]
    if not lookups or not all(isinstance(cast, UnrealizedConversionCastOp) for cast in casts):
        return
    if not all(isinstance(lookup, tensor.ExtractOp) for lookup in lookups):
        return
    block = Block()
    with ImplicitBuilder(block):
        table = _packed_bytes(op)
    _insert_before(op, block)
    for lookup in lookups:
        assert isinstance(lookup, tensor.ExtractOp)
        block = Block()
        with ImplicitBuilder(block):
            row, column = lookup.indices
            value = _field(table, row, column, width)
        _insert_before(lookup, block)
        Rewriter.replace_op(lookup, [], [value])
    for cast in casts:
        Rewriter.erase_op(cast)
    Rewriter.erase_op(op)


def _insert_before(before: Operation, block: Block) -> None:
    for op in list(block.ops):
        op.detach()
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))


def _field(table: SSAValue, row: SSAValue, column: SSAValue, width: Width) -> SSAValue:
    """Return the element of a packed matrix at a row and column, as i8."""
    place = arith.MuliOp(column, index_constant(width.bits)).result
    first, eight = _byte(table, row, place), index_constant(8)
    word = first
    if 8 % width.bits:
        end = arith.AddiOp(place, index_constant(width.bits - 1)).result
        last = arith.ShLIOp(_byte(table, row, end), s.constant(8, i32)).result
        word = arith.OrIOp(first, last).result
    below = arith.IndexCastOp(arith.RemUIOp(place, eight).result, i32).result
    unused = s.constant(32 - width.bits, i32)
    top = arith.ShLIOp(word, s.sub(unused, below)).result
    return _to_signed(arith.ShRSIOp(top, unused).result, width)


def _byte(table: SSAValue, row: SSAValue, place: SSAValue) -> SSAValue:
    """Return the byte that holds a bit of a row, in 32 bits."""
    at = arith.DivUIOp(place, index_constant(8)).result
    return arith.ExtUIOp(tensor.ExtractOp(table, [row, at], i8).result, i32).result


def _to_signed(field: SSAValue, width: Width) -> SSAValue:
    """Convert a sign-extended field to i8."""
    if width.is_binary:
        # A set bit has become -1, and a clear one must become +1.
        field = arith.OrIOp(field, s.constant(1, field.type)).result
    return s.to_integer(field, i8)


def unpack(packed: SSAValue, width: Width, k: int) -> SSAValue:
    """Unpack rows of packed bytes to rows of k integers, as i8."""
    if width.bits == 8:
        return packed
    fields, size = 8 // gcd(width.bits, 8), width.bits // gcd(width.bits, 8)
    words = _words(packed, size)
    rows, count = mico.shape_of(words[0].type)
    type = s.integer_type(mico.element_type(words[0].type))
    assert type is not None
    row, word, field = loops(3)

    def extract(bits: SSAValue, later: SSAValue | None = None) -> SSAValue:
        number = s.to_integer(s.loop_index(2), type)
        below = s.mul(number, s.constant(width.bits, type))
        above = s.sub(s.constant(type.bitwidth - width.bits, type), below)
        if later is not None:
            # What does not end in the first word is in the last, so many bits nearer to its end.
            ends = arith.CmpiOp(above, s.constant(0, type), "sge").result
            moved = s.add(above, s.constant(8 * (size - WORD), type))
            bits = arith.SelectOp(ends, bits, later).result
            above = arith.SelectOp(ends, above, moved).result
        top = arith.ShLIOp(bits, above).result
        field = arith.ShRSIOp(top, s.constant(type.bitwidth - width.bits, type)).result
        return _to_signed(field, width)

    inputs = [read(each, row, word) for each in words]
    values = generic(inputs, [row, word, field], [rows, count, fields], i8, extract)
    return _first_columns(collapse(values, [[0], [1, 2]]), k)


def _words(packed: SSAValue, size: int) -> list[SSAValue]:
    """Return rows of little-endian words; where one is too small, two that overlap."""
    if size == 1:
        return [packed]
    rows, length = mico.shape_of(packed.type)
    count = -(-length // size)
    whole = pad(packed, [0, 0], [0, count * size - length], 0)
    parts = expand_axis(whole, 1, [count, size])
    if size <= WORD:
        return [_join_bytes(parts)]
    type = TensorType(i8, [rows, count, WORD])
    return [
        _join_bytes(
            tensor.ExtractSliceOp(parts, [0, 0, first], [rows, count, WORD], [1, 1, 1], type).result
        )
        for first in (0, size - WORD)
    ]


def _join_bytes(parts: SSAValue) -> SSAValue:
    """Join the bytes along the last dimension to one integer."""
    rows, count, _ = mico.shape_of(parts.type)
    row, word, byte = loops(3)

    def join(part: SSAValue, joined: SSAValue) -> SSAValue:
        number = s.to_integer(s.loop_index(2), i32)
        wide = arith.ExtUIOp(part, i32).result
        moved = arith.ShLIOp(wide, s.mul(number, s.constant(8, i32))).result
        return arith.OrIOp(joined, moved).result

    return generic([read(parts, row, word, byte)], [row, word], [rows, count], i32, join, start=0)


def _first_columns(rows: SSAValue, k: int) -> SSAValue:
    """Drop the padding at the end of each row."""
    count, length = mico.shape_of(rows.type)
    if length == k:
        return rows
    type = TensorType(mico.element_type(rows.type), [count, k])
    return tensor.ExtractSliceOp(rows, [0, 0], [count, k], [1, 1], type).result
