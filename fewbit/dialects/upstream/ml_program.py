"""ml_program ops that xDSL lacks, and `global_load_const` with the property name that MLIR uses."""

from __future__ import annotations

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.ml_program import MLProgram
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def

from fewbit.dialects.upstream.extend import extend


@irdl_op_definition
class GlobalLoadConstOp(IRDLOperation):
    """The value of a global that never changes."""

    name = "ml_program.global_load_const"

    symbol = prop_def(SymbolRefAttr, prop_name="global")
    result = result_def()

    assembly_format = "$global attr-dict `:` type($result)"


@irdl_op_definition
class GlobalLoadOp(IRDLOperation):
    """The value that a mutable global has now."""

    name = "ml_program.global_load"

    symbol = prop_def(SymbolRefAttr, prop_name="global")
    result = result_def()

    assembly_format = "$global attr-dict `:` type($result)"


@irdl_op_definition
class GlobalStoreOp(IRDLOperation):
    """A new value for a mutable global."""

    name = "ml_program.global_store"

    symbol = prop_def(SymbolRefAttr, prop_name="global")
    value = operand_def()

    assembly_format = "$global `=` $value attr-dict `:` type($value)"


DIALECT = extend(MLProgram, GlobalLoadConstOp, GlobalLoadOp, GlobalStoreOp)
