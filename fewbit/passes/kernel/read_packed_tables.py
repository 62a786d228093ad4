"""Embeddings whose table is the weight of a layer read it as the layer's kernel has it.

A language model with a tied head has one matrix, its largest, as table and as weight. The kernel
reads it in panels, and the embedding only a row of it for each token, so the panels serve both and
the matrix is stored once. Where its numbers lie is worked out here from the widths of panels, the
step of a dot product and the fields of a byte, and compared with what is stored: weights whose bits
are in several planes, those of 3 bits for example, are stored in another way, and then there are
two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i8
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.symbols import SymbolTable, using
from fewbit.kernels.integer.fields import Fields, takes_unsigned
from fewbit.kernels.pack import panel_starts
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.tensors import index_constant
from fewbit.passes.linalg.lower_embedding import look_up
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.toolchain.isa import Isa

Array = np.ndarray[Any, Any]
PACKED = "{}.matmul.packed"
"""The constant that `call-kernels` makes of a weight."""


@dataclass(frozen=True)
class ReadPackedTables(ModulePass):
    """Read tables of embeddings in the panels that kernels have."""

    name = "read-packed-tables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        program, isa = known.program(op), known.get(Isa)
        with using(SymbolTable(op)) as table:
            lower_ops(op, {mico.EmbeddingOp: lambda each: _embedding(each, program, table, isa)})


@dataclass(frozen=True)
class Panels:
    """A matrix whose rows are in panels, and whose bytes have numbers of several steps.

    In a panel, [columns / unit, width, step] bytes follow one another, and each has a number of
    every step of its unit. The first panels may be wider than the others.
    """

    columns: int
    starts: Sequence[int]
    """The first row of each panel, and where the last one ends."""
    step: int
    fields: Fields | None
    """How numbers are stored; None for floats."""

    @property
    def steps(self) -> int:
        """How many steps share bytes."""
        return self.fields.run if self.fields else 1

    @property
    def unit(self) -> int:
        """How many columns share bytes."""
        return self.step * self.steps

    @property
    def numbers(self) -> int:
        """How many bytes or floats are stored."""
        return self.starts[-1] * self.columns // self.steps

    def arrange(self, matrix: Array) -> Iterator[Array]:
        """Yield the panels of a matrix."""
        for start, end in pairwise(self.starts):
            rows = matrix[start:end]
            if self.fields is not None:
                rows = self.fields.number(rows)
            panel = np.zeros((end - start, self.columns), rows.dtype)
            panel[: len(rows)] = rows
            split = panel.reshape(end - start, -1, self.steps, self.step).transpose(1, 2, 0, 3)
            together = split.reshape(-1, self.steps, (end - start) * self.step)
            yield (together if self.fields is None else self.fields.join(together)).ravel()

    def place(self, row: SSAValue, column: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Return where the byte of an element is, and which of its numbers if it has several."""
        first, panel, inside, width = self._panel(row)
        unit, cell = _divide(column, self.unit)
        which = None
        if self.steps > 1:
            which, cell = _divide(cell, self.step)
        units = self.columns // self.unit
        place = _join(_join(panel, units, unit), width, inside)
        if first is not None:
            place = _join(first, units, place)
        return _join(place, self.step, cell), which

    def _panel(self, row: SSAValue) -> tuple[SSAValue | None, SSAValue, SSAValue, SSAValue | int]:
        """Return the panel of a row among those of its width, the place within, and the width.

        What comes before is the row where panels of this width begin, if others do not.
        """
        widths = [end - start for start, end in pairwise(self.starts)]
        if widths[0] == widths[-1]:
            return None, *_divide(row, widths[0]), widths[0]
        narrow = index_constant(widths.count(widths[0]) * widths[0])
        is_wide = arith.CmpiOp(row, narrow, "ult").result
        first = arith.SelectOp(is_wide, index_constant(0), narrow).result
        width = arith.SelectOp(is_wide, *map(index_constant, (widths[0], widths[-1]))).result
        return first, *_divide(arith.SubiOp(row, first).result, width), width


def _divide(index: SSAValue, by: SSAValue | int) -> tuple[SSAValue, SSAValue]:
    """Return a quotient and a remainder."""
    divisor = index_constant(by) if isinstance(by, int) else by
    return arith.DivUIOp(index, divisor).result, arith.RemUIOp(index, divisor).result


def _join(outer: SSAValue, count: SSAValue | int, inner: SSAValue) -> SSAValue:
    """Return the index of one of `count` in a row of them."""
    counted = index_constant(count) if isinstance(count, int) else count
    return arith.AddiOp(arith.MuliOp(outer, counted).result, inner).result


def _embedding(
    op: mico.EmbeddingOp, program: Program, table: SymbolTable, isa: Isa
) -> Sequence[SSAValue] | None:
    read = op.weight.owner
    if not isinstance(read, mico.GetConstantOp):
        return None
    packed = table.get(PACKED.format(read.symbol.root_reference.data))
    if not isinstance(packed, mico.ConstantOp):
        return None
    panels = _find_panels(read.constant, packed, program, isa)
    if panels is None:
        return None
    content = mico.GetConstantOp(packed.sym_name.data, packed.type).result

    def element_at(row: SSAValue, column: SSAValue) -> SSAValue:
        place, which = panels.place(row, column)
        stored = tensor.ExtractOp(content, [place], mico.element_type(packed.type)).result
        return stored if panels.fields is None else _number(stored, which, panels.fields)

    return look_up(op, panels.columns, element_at)


def _number(stored: SSAValue, which: SSAValue | None, fields: Fields) -> SSAValue:
    """Return the weight that one of the fields of a byte stands for."""
    number = stored
    if which is not None:
        place = s.mul(arith.IndexCastOp(which, i8).result, s.constant(fields.bits, i8))
        mask = s.constant((1 << fields.bits) - 1, i8)
        number = arith.AndIOp(arith.ShRUIOp(number, place).result, mask).result
    if fields.lift:
        number = arith.ShLIOp(number, s.constant(fields.lift, i8)).result
    if not fields.bias:
        return number
    bias = arith.ConstantOp(IntegerAttr((fields.bias + 128) % 256 - 128, i8)).result
    return arith.SubiOp(number, bias).result


def _find_panels(
    weight: mico.ConstantOp, packed: mico.ConstantOp, program: Program, isa: Isa
) -> Panels | None:
    """Return how the packed weight lies in panels; None where it lies in another way."""
    matrix, content = (constant_value(each, program.store) for each in (weight, packed))
    rows, columns = matrix.shape
    for fields in _layouts(weight, content, isa):
        panels = Panels(columns, panel_starts(rows, isa), isa.step if fields else 1, fields)
        if columns % panels.unit or content.size != panels.numbers:
            continue
        stored = content if fields is None else content.view(np.uint8)
        ends = [start * columns // panels.steps for start in panels.starts]
        parts = (stored[a:b] for a, b in pairwise(ends))
        if all(map(np.array_equal, panels.arrange(matrix), parts)):
            return panels
    return None


def _layouts(weight: mico.ConstantOp, content: Array, isa: Isa) -> list[Fields | None]:
    """Return how numbers may be stored, if each is in one plane."""
    if content.dtype != np.int8:
        return [None]
    width = mico.element_width(weight.type)
    bits = 8 if width is None else width.bits
    kinds = (False, True) if takes_unsigned(isa, bits) else (False,)
    fields = [Fields(isa, bits, unsigned) for unsigned in kinds]
    return [each for each in fields if len(each.planes) == 1]
