"""What a size is, in terms of the sizes of the program's inputs: `tokens[1]`, `2 * x[0]`.

It is for readers of a placement, who want to know what a transfer moves before anything runs. Ops
are followed that say so by their kind; where one does not, there is no formula.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, Operation, SSAValue

from fewbit.dialects.graph import CallOp, SubgraphOp, TransferOp
from fewbit.dialects.mico import BitLinearOp, EmbeddingOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.layout import LayoutOp, ReshapeOp
from fewbit.dialects.mico.pooling import PoolOp
from fewbit.dialects.mico.syntax import LayerOp, ints
from fewbit.ir.symbols import SymbolTable


@dataclass(frozen=True)
class SizeFormulas:
    """Formulas of sizes in a module whose entry has the arguments of these names."""

    symbols: SymbolTable
    names: dict[SSAValue, str]
    calls: tuple[CallOp, ...] = field(default=())
    """The calls around a value, the innermost last."""

    def of(self, value: SSAValue, axis: int) -> str | None:
        """Return the formula of a dimension; None where no rule says it."""
        size = shape_of(value.type)[axis]
        if size >= 0:
            return str(size)
        if value in self.names:
            return f"{self.names[value]}[{axis}]"
        if isinstance(value, BlockArgument):
            return self._of_argument(value, axis)
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, CallOp):
            return self._of_call(op, value, axis)
        if isinstance(op, tensor.EmptyOp):
            before = sum(size < 0 for size in shape_of(value.type)[:axis])
            return self._of_number(op.dynamic_sizes[before])
        same = _with_same_size(op, value, axis)
        return None if same is None else self.of(same, axis)

    def _of_argument(self, value: BlockArgument, axis: int) -> str | None:
        if not self.calls or not isinstance(value.owner.parent_op(), SubgraphOp):
            return None
        *others, call = self.calls
        around = SizeFormulas(self.symbols, self.names, tuple(others))
        return around.of(call.arguments[value.index], axis)

    def _of_call(self, call: CallOp, value: SSAValue, axis: int) -> str | None:
        callee = self.symbols.get(call.callee.root_reference.data)
        if not isinstance(callee, SubgraphOp):
            return None
        number = list(call.res).index(value)  # pyright: ignore[reportArgumentType]
        inside = SizeFormulas(self.symbols, self.names, (*self.calls, call))
        return inside.of(callee.return_op.arguments[number], axis)

    def _of_number(self, value: SSAValue) -> str | None:
        op = value.owner
        if isinstance(op, arith.IndexCastOp):
            return self._of_number(op.input)
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return str(op.value.value.data)
        if not isinstance(op, tensor.DimOp):
            return None
        axis = self._of_number(op.index)
        return None if axis is None else self.of(op.source, int(axis))


def _with_same_size(op: Operation, value: SSAValue, axis: int) -> SSAValue | None:
    """Return an operand of which this dimension has the same size."""
    if isinstance(op, TransferOp):
        return op.source
    if isinstance(op, LinalgStructuredOperation):
        return op.outputs[list(op.results).index(value)]  # pyright: ignore[reportArgumentType]
    if isinstance(op, EmbeddingOp):
        return op.indices
    if isinstance(op, QuantizedLayerOp | PoolOp):
        return op.operands[0] if axis == 0 or isinstance(op, BitLinearOp) else None
    if isinstance(op, ReshapeOp):
        return op.input if ints(op.shape)[axis] == 0 else None
    if not isinstance(op, LayerOp) or isinstance(op, LayoutOp):
        return None
    return next((each for each in op.operands if each.type == value.type), None)
