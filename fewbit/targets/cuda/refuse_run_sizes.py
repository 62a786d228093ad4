"""Sizes that only a run knows are refused before anything is lowered.

All launches are planned for sizes that are numbers. Here the program still has its own ops, so an
error can name the one that needs a size, and the layer it is in. What is computed from shapes alone
is known; what is computed from elements of inputs is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.errors import UnsupportedError
from fewbit.ir.locations import place_of
from fewbit.pipeline.entry import functions_of


@dataclass(frozen=True)
class RefuseRunSizes(ModulePass):
    """Refuse tensors whose sizes depend on what inputs contain."""

    name = "refuse-run-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            refuse_run_sizes(function)


def refuse_run_sizes(function: func.FuncOp) -> None:
    """Raise an error for the first op that makes a tensor of such a size."""
    block = function.body.block
    data: set[SSAValue] = {arg for arg in block.args if not isinstance(arg.type, IndexType)}
    for op in block.ops:
        if not data.intersection(_read(op)):
            continue
        if _has_dynamic_result(op) and not data.isdisjoint(_sizes(op)):
            raise UnsupportedError(
                "the size of a tensor depends on what the inputs contain, not only on their shapes",
                place=place_of(op),
                hint="this target plans all launches before it runs: end the model before that op, "
                "or compile it for cpu. Language models decode here in steps of one token: compile "
                "the checkpoint itself, or import it with steps=True",
            )
        if not isinstance(op, tensor.DimOp):
            data.update(op.results)


def _read(op: Operation) -> Iterator[SSAValue]:
    """Yield what an op and those inside of it read."""
    for each in op.walk():
        yield from each.operands


def _sizes(op: Operation) -> list[SSAValue]:
    """Return operands that may say how large a result is."""
    given = op.sizes if isinstance(op, tensor.ExtractSliceOp) else op.operands
    return [value for value in given if isinstance(value.type, IndexType)]


def _has_dynamic_result(op: Operation) -> bool:
    types = [result.type for result in op.results]
    tensors = [cast("TensorType[Attribute]", t) for t in types if isinstance(t, TensorType)]
    return any(size < 0 for each in tensors for size in each.get_shape())
