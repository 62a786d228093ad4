"""The few ops and attributes of IREE that programs for it hold: globals, filled from an archive,
dispatches of executables, and barriers between dispatches.

They are printed in generic form, which IREE reads, and never parsed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolOpInterface


@irdl_attr_definition
class NamedParameterAttr(ParametrizedAttribute):
    """A tensor in an archive of parameters, by the archive's scope and its own key."""

    name = "flow.parameter.named"
    scope: StringAttr = param_def()
    key: StringAttr = param_def()
    type: TypeAttribute = param_def()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.scope)
            printer.print_string("::")
            printer.print_attribute(self.key)
        printer.print_string(" : ")
        printer.print_attribute(self.type)


@irdl_op_definition
class GlobalOp(IRDLOperation):
    name = "util.global"
    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(TypeAttribute)
    initial_value = opt_prop_def(Attribute)
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, type: TypeAttribute, value: Attribute) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "sym_visibility": StringAttr("private"),
                "type": type,
                "initial_value": value,
            }
        )


@irdl_op_definition
class GlobalLoadOp(IRDLOperation):
    name = "util.global.load"
    symbol = prop_def(SymbolRefAttr, prop_name="global")
    is_immutable = opt_prop_def(UnitAttr)
    result = result_def(TypeAttribute)
    traits = traits_def(Pure())

    def __init__(self, name: str, type: TypeAttribute) -> None:
        super().__init__(
            properties={"global": SymbolRefAttr(name), "is_immutable": UnitAttr()},
            result_types=[type],
        )


@irdl_op_definition
class DispatchOp(IRDLOperation):
    """Runs a function of an executable, on tensors and on numbers behind them."""

    name = "flow.dispatch"
    entry_points = prop_def(ArrayAttr[SymbolRefAttr])
    workload = var_operand_def(IndexType())
    arguments = var_operand_def()
    argument_sizes = var_operand_def(IndexType())
    result_sizes = var_operand_def(IndexType())
    outputs = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        executable: str,
        function: str,
        tensors: Sequence[SSAValue],
        numbers: Sequence[SSAValue],
        argument_sizes: Sequence[SSAValue],
        result_sizes: Sequence[SSAValue],
        result_types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[[], [*tensors, *numbers], argument_sizes, result_sizes],
            properties={"entry_points": ArrayAttr([SymbolRefAttr(executable, [function])])},
            result_types=[result_types],
        )


@irdl_op_definition
class OptimizationBarrierOp(IRDLOperation):
    """Gives its operand, and keeps IREE from fusing what computes it with what reads it."""

    name = "util.optimization_barrier"
    arguments = var_operand_def()
    outputs = var_result_def()

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[[value]], result_types=[[value.type]])


@irdl_op_definition
class TieShapeOp(IRDLOperation):
    """Gives its operand, and says the sizes that its type leaves open."""

    name = "flow.tensor.tie_shape"
    value = operand_def()
    sizes = var_operand_def(IndexType())
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, sizes: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, sizes], result_types=[value.type])


@irdl_op_definition
class TensorBitcastOp(IRDLOperation):
    """Gives the bits of its operand as a tensor of another type, outside of dispatches."""

    name = "flow.tensor.bitcast"
    source = operand_def()
    source_sizes = var_operand_def(IndexType())
    result_sizes = var_operand_def(IndexType())
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, type: Attribute) -> None:
        super().__init__(operands=[source, [], []], result_types=[type])


Util = Dialect("util", [GlobalOp, GlobalLoadOp, OptimizationBarrierOp])
Flow = Dialect("flow", [DispatchOp, TensorBitcastOp, TieShapeOp], [NamedParameterAttr])
