"""Constants of plain types as `arith.constant`, which every MLIR tool reads.

Only what stands in the text of the module can move there; constants of the weight store stay. It
is meant for small programs: text that holds its weights is slow to read and to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.ir.symbols import SymbolTable, using
from fewbit.passes.graph.symbol_dce import SymbolDce
from fewbit.passes.linalg.building.driver import lower_ops


@dataclass(frozen=True)
class ConstantsToArith(ModulePass):
    """Turn reads of constants into arith.constant, and remove those constants."""

    name = "constants-to-arith"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using(SymbolTable(op)):
            lower_ops(op, {mico.GetConstantOp: _get_constant})
        SymbolDce().apply(ctx, op)


def _get_constant(op: mico.GetConstantOp) -> Sequence[SSAValue] | None:
    value = op.constant.value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    return [arith.ConstantOp(value, op.result.type).result]
