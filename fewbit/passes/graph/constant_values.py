"""Values that depend on constants alone, found backwards from where they are used."""

from __future__ import annotations

from xdsl.dialects import arith, tensor
from xdsl.ir import Operation, SSAValue

from fewbit.dialects.mico import GetConstantOp
from fewbit.passes.graph.fold_constants import has_known_size, is_function_of_operands


def constant_reads(value: SSAValue) -> list[GetConstantOp] | None:
    """Return the constants that a value is computed from; None where anything else takes part."""
    reads: dict[GetConstantOp, None] = {}
    seen, stack = {value}, [value]
    while stack:
        op = stack.pop().owner
        if isinstance(op, GetConstantOp):
            reads[op] = None
        elif not isinstance(op, Operation) or not _is_foldable(op):
            return None
        else:
            stack += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
    return list(reads)


def _is_foldable(op: Operation) -> bool:
    if not all(has_known_size(value.type) for value in (*op.results, *op.operands)):
        return False
    if isinstance(op, arith.ConstantOp | tensor.EmptyOp):
        return True
    return is_function_of_operands(op)
