"""Embeddings whose table is the weight of a layer read it as the layer's kernel has it.

A language model with a tied head has one matrix, its largest, as table and as weight. The kernel
reads it in panels, and the embedding only a row of it for each token, so the panels serve both and
the matrix is stored once. Where they lie is worked out here from the width of a panel and the step
of a dot product, and compared with the numbers themselves: weights of fewer bits, or with panels of
different widths, are stored in another way, and then there are two of them, as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from fewbit.kernels.pack import panel_starts
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.tensors import index_constant
from fewbit.passes.linalg.lower_embedding import look_up
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.toolchain.isa import Isa

Array = np.ndarray[Any, Any]
PACKED = "{}.matmul.packed"
"""The constant that `call-kernels` makes of a weight."""
LOWEST = np.int8(-128)
"""Added to a byte, it makes the lowest 0; where that overflows, it is the same as subtracted."""


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
    """A matrix [rows, columns] as [rows / panel, columns / step, panel, step]."""

    columns: int
    panel: int
    step: int
    bias: int = 0
    """What was added to bytes, of which some dot products take only positive ones."""

    def arrange(self, matrix: Array) -> Iterator[Array]:
        """Yield the panels of a matrix."""
        for start in range(0, len(matrix), self.panel):
            panel = matrix[start : start + self.panel]
            yield panel.reshape(self.panel, -1, self.step).swapaxes(0, 1).ravel()

    def place(self, row: SSAValue, column: SSAValue) -> SSAValue:
        """Return where an element is."""
        panel, inside = _divide(row, self.panel)
        step, rest = _divide(column, self.step)
        place = _join(panel, self.columns // self.step, step)
        return _join(_join(place, self.panel, inside), self.step, rest)


def _divide(index: SSAValue, by: int) -> tuple[SSAValue, SSAValue]:
    """Return a quotient and a remainder."""
    divisor = index_constant(by)
    return arith.DivUIOp(index, divisor).result, arith.RemUIOp(index, divisor).result


def _join(outer: SSAValue, count: int, inner: SSAValue) -> SSAValue:
    """Return the index of one of `count` in a row of them."""
    return arith.AddiOp(arith.MuliOp(outer, index_constant(count)).result, inner).result


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
        place, type = panels.place(row, column), mico.element_type(packed.type)
        element = tensor.ExtractOp(content, [place], type).result
        if not panels.bias:
            return element
        bias = arith.ConstantOp(IntegerAttr(panels.bias, i8)).result
        return arith.SubiOp(element, bias).result

    return look_up(op, panels.columns, element_at)


def _find_panels(
    weight: mico.ConstantOp, packed: mico.ConstantOp, program: Program, isa: Isa
) -> Panels | None:
    """Return how the packed weight lies in panels that are all alike; None where it does not."""
    matrix, content = (constant_value(each, program.store) for each in (weight, packed))
    rows, columns = matrix.shape
    starts = panel_starts(rows, isa)
    panel, step = starts[1], isa.step if content.dtype == np.int8 else 1
    if rows % panel or columns % step or content.size != matrix.size:
        return None
    panels = Panels(columns, panel, step)
    stored: Iterable[Array] = content.reshape(-1, panel * columns)
    if content.dtype == np.int8 and content[0] != matrix[0, 0]:
        panels, stored = replace(panels, bias=int(LOWEST)), (each ^ LOWEST for each in stored)
    is_so = all(map(np.array_equal, panels.arrange(matrix), stored))
    return panels if is_so else None
