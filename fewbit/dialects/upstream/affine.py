"""affine ops that xDSL lacks."""

from __future__ import annotations

from xdsl.dialects.affine import Affine
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.upstream.extend import extend


@irdl_op_definition
class MaxOp(IRDLOperation):
    """The largest result of an affine map."""

    name = "affine.max"

    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        wanted = self.map.data.num_dims + self.map.data.num_symbols
        if len(self.arguments) != wanted:
            raise VerifyException(f"the map takes {wanted} operands, got {len(self.arguments)}")

    @classmethod
    def parse(cls, parser: Parser) -> MaxOp:
        position = parser.pos
        map = parser.parse_attribute()
        if not isinstance(map, AffineMapAttr):
            parser.raise_error("expected an affine map", position)
        operands = [
            parser.resolve_operand(operand, IndexType())
            for delimiter in (parser.Delimiter.PAREN, parser.Delimiter.SQUARE)
            for operand in parser.parse_optional_comma_separated_list(
                delimiter, parser.parse_unresolved_operand
            )
            or ()
        ]
        return cls(operands=[operands], result_types=[IndexType()], properties={"map": map})

    def print(self, printer: Printer) -> None:
        dims = self.map.data.num_dims
        printer.print_string(" ")
        printer.print_attribute(self.map)
        with printer.in_parens():
            printer.print_list(self.arguments[:dims], printer.print_operand)
        if len(self.arguments) > dims:
            with printer.in_square_brackets():
                printer.print_list(self.arguments[dims:], printer.print_operand)


DIALECT = extend(Affine, MaxOp)
