"""Constants: module-level symbols with their data, and the op that reads one.

    mico.constant @fc1.scale : tensor<64xf32> = #mico.ref<"fc1.scale", "03ab…">
    mico.constant @fc1 : tensor<64x9x!mico.int<4>> = #mico.ref<"fc1", "9f2c…"> scale @fc1.scale
    %w = mico.get_constant @fc1 : tensor<64x9x!mico.int<4>>

A constant of few-bit integers names the constant that is its scale, so that no pass can part the
two. In text that gives none, the integers stand for themselves: a scale of 1 is made.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyTensorTypeConstr,
    DenseIntOrFPElementsAttr,
    FlatSymbolRefAttrConstr,
    Float32Type,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, Pure, SymbolOpInterface, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from fewbit.dialects.mico.attributes import PackedAttr, RefAttr, parse_hex
from fewbit.dialects.mico.constraints import check_offset
from fewbit.dialects.mico.shapes import DYNAMIC, granularity, rows_of, show
from fewbit.dialects.mico.types import as_tensor, element_type, element_width, shape_of
from fewbit.errors import Error
from fewbit.ir.parse import SourceParser
from fewbit.ir.symbols import lookup
from fewbit.ir.text import mixes_zeros, print_bytes
from fewbit.numerics.packing import row_bytes
from fewbit.numerics.widths import Width

MAX_INLINE = 1 << 24
"""Elements of a few-bit constant whose data may stand in text."""


class NamesItsScale(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        assert isinstance(op, ConstantOp)
        if op.scale is not None:
            scale = _constant(op, op.scale)
            if not _is_tensor_of(scale.type, Float32Type):
                raise VerifyException(f"the scale {op.scale} is a {scale.type}, not f32")
            granularity(shape_of(op.type), shape_of(scale.type))
        if op.zero_point is not None:
            zero_point = _constant(op, op.zero_point)
            if not _is_tensor_of(zero_point.type, IntegerType):
                raise VerifyException(
                    f"the zero point {op.zero_point} is a {zero_point.type}, not integers"
                )
            granularity(shape_of(op.type), shape_of(zero_point.type))
        if op.offset is not None and op.scale is not None:
            offset, scale = _constant(op, op.offset), _constant(op, op.scale)
            if not _is_tensor_of(offset.type, Float32Type):
                raise VerifyException(f"the offset {op.offset} is a {offset.type}, not f32")
            zero = None if op.zero_point is None else _constant(op, op.zero_point).type
            check_offset(offset.type, op.type, scale.type, zero)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant tensor with a name."""

    name = "mico.constant"

    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def(AnyTensorTypeConstr)
    value = prop_def(base(PackedAttr) | base(RefAttr) | base(DenseIntOrFPElementsAttr))
    scale = opt_prop_def(FlatSymbolRefAttrConstr)
    zero_point = opt_prop_def(FlatSymbolRefAttrConstr)
    offset = opt_prop_def(FlatSymbolRefAttrConstr)

    traits = traits_def(HasParent(ModuleOp), SymbolOpInterface(), NamesItsScale())

    def __init__(
        self,
        name: str,
        type: TypeAttribute,
        value: Attribute,
        scale: str | None = None,
        zero_point: str | None = None,
        offset: str | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "type": type,
                "value": value,
                "scale": None if scale is None else SymbolRefAttr(scale),
                "zero_point": None if zero_point is None else SymbolRefAttr(zero_point),
                "offset": None if offset is None else SymbolRefAttr(offset),
            }
        )

    def verify_(self) -> None:
        shape = shape_of(self.type)
        if DYNAMIC in shape:
            raise VerifyException(f"a constant has a static shape, not {show(shape)}")
        width = element_width(self.type)
        if width is None:
            self._verify_plain()
            return
        if self.scale is None:
            raise VerifyException("a constant of few-bit integers needs a scale")
        if self.zero_point is not None and width < Width.of(2):
            raise VerifyException(f"a zero point needs at least 2 bits, not {width}")
        if isinstance(self.value, PackedAttr):
            _check_length(len(self.value.data), shape, width)
        elif not isinstance(self.value, RefAttr):
            raise VerifyException("few-bit integers are packed: #mico.packed or #mico.ref")

    @property
    def parts(self) -> tuple[SymbolRefAttr, ...]:
        """The constants that go with few-bit integers."""
        named = (self.scale, self.zero_point, self.offset)
        return tuple(part for part in named if part is not None)

    def _verify_plain(self) -> None:
        if self.parts:
            raise VerifyException("only a constant of few-bit integers has a scale")
        if isinstance(self.value, PackedAttr):
            raise VerifyException(f"packed data needs a few-bit type, not {self.type}")
        if isinstance(self.value, DenseIntOrFPElementsAttr) and self.value.type != self.type:
            raise VerifyException(f"the data is a {self.value.type}, not {self.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        name = parser.parse_symbol_name().data
        parser.parse_punctuation(":", " before the type")
        type_position = parser.pos
        type = as_tensor(parser.parse_type())
        if type is None:
            parser.raise_error("a constant is a tensor", type_position)
        if DYNAMIC in shape_of(type):
            parser.raise_error("a constant has a static shape", type_position)
        parser.parse_punctuation("=", " before the data")
        value = _parse_value(parser, type)
        scale = _parse_symbol_clause(parser, "scale")
        zero_point = _parse_symbol_clause(parser, "zero_point")
        offset = _parse_symbol_clause(parser, "offset")
        attributes = parser.parse_optional_attr_dict()
        if isinstance(parser, SourceParser):
            if element_width(type) is not None:
                parser.note_scale(given=scale is not None, offset=type_position)
                scale = scale or _unit_scale(parser, name, type_position)
            parser.constant_types[name] = type
            if scale is not None:
                parser.constant_scales[name] = scale
            if zero_point is not None:
                parser.constant_zero_points[name] = zero_point
            if offset is not None:
                parser.constant_offsets[name] = offset
        op = ConstantOp(name, type, value, scale, zero_point, offset)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        printer.print_string(" = ")
        if isinstance(self.value, PackedAttr):
            printer.print_string("dense<")
            printer.print_attribute(self.value.digits)
            printer.print_string(">")
        elif isinstance(self.value, DenseIntOrFPElementsAttr) and mixes_zeros(self.value):
            print_bytes(printer, self.value)
        elif isinstance(self.value, DenseIntOrFPElementsAttr):
            self.value.print_without_type(printer)
        else:
            printer.print_attribute(self.value)
        for keyword in ("scale", "zero_point", "offset"):
            symbol = self.properties.get(keyword)
            if symbol is not None:
                printer.print_string(f" {keyword} ")
                printer.print_attribute(symbol)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class ReadsConstant(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        assert isinstance(op, GetConstantOp)
        constant = _constant(op, op.symbol)
        if constant.type != op.result.type:
            raise VerifyException(f"{op.symbol} is a {constant.type}, read as {op.result.type}")


@irdl_op_definition
class GetConstantOp(IRDLOperation):
    """The value of a constant."""

    name = "mico.get_constant"

    symbol = prop_def(FlatSymbolRefAttrConstr)
    result = result_def(AnyTensorTypeConstr)

    assembly_format = "$symbol attr-dict `:` type($result)"

    traits = traits_def(Pure(), ReadsConstant())

    def __init__(self, symbol: str | SymbolRefAttr, type: Attribute) -> None:
        if isinstance(symbol, str):
            symbol = SymbolRefAttr(symbol)
        super().__init__(properties={"symbol": symbol}, result_types=[type])

    @property
    def constant(self) -> ConstantOp:
        """The constant that is read; the op must be in a verified module."""
        constant = lookup(self, self.symbol)
        assert isinstance(constant, ConstantOp)
        return constant


def _constant(op: Operation, symbol: SymbolRefAttr) -> ConstantOp:
    definition = lookup(op, symbol)
    if definition is None:
        raise VerifyException(f"no mico.constant is named {symbol}")
    if not isinstance(definition, ConstantOp):
        raise VerifyException(f"{symbol} is a {definition.name}, not a mico.constant")
    return definition


def _is_tensor_of(type: Attribute, element: type[Attribute]) -> bool:
    return as_tensor(type) is not None and isinstance(element_type(type), element)


def _check_length(given: int, shape: tuple[int, ...], width: Width) -> None:
    rows, k = rows_of(shape)
    expected = rows * row_bytes(k, width)
    if given != expected:
        raise VerifyException(
            f"{given} packed bytes, but {show(shape)} at {width} bits is {expected} bytes "
            f"({rows} rows of {row_bytes(k, width)})"
        )


def _parse_symbol_clause(parser: Parser, keyword: str) -> str | None:
    return parser.parse_symbol_name().data if parser.parse_optional_keyword(keyword) else None


def _parse_value(parser: Parser, type: TensorType[Attribute]) -> Attribute:
    width = element_width(type)
    position = parser.pos
    if parser.parse_optional_keyword("dense") is None:
        return parser.parse_attribute()
    if width is None:
        if not isa(type, TensorType[AnyDenseElement]):
            parser.raise_error(f"no data can be written for {type}", position)
        return parser.parse_dense_int_or_fp_elements_attr(type)
    return _parse_few_bit(parser, shape_of(type), width, position)


def _parse_few_bit(
    parser: Parser, shape: tuple[int, ...], width: Width, position: int
) -> PackedAttr:
    """Parse `dense<"0x…">`, packed bytes, or `dense<[[1, -2], …]>`, integers to be packed."""
    import numpy as np

    from fewbit.numerics.packing import pack

    if prod(shape) > MAX_INLINE:
        parser.raise_error(
            f"{show(shape)} is too much to write out as text; keep it in a weight store", position
        )
    with parser.in_angle_brackets():
        if (text := parser.lexer.input.at(parser.pos) or "") == '"':
            packed = PackedAttr(parse_hex(parser))
            try:
                _check_length(len(packed.data), shape, width)
            except VerifyException as e:
                parser.raise_error(str(e), position)
            return packed
        if not text or text not in "-[0123456789":
            parser.raise_error('expected the data: "0x…", or integers')
        numbers: list[int] = []
        _parse_nested(parser, shape, numbers)
    values = np.array(numbers, dtype=np.int64)
    if len(numbers) == 1:
        values = np.broadcast_to(values, (prod(shape),))
    try:
        rows = values.reshape(shape[0] if shape else 1, -1)
        return PackedAttr(pack(rows, width).tobytes())
    except Error as e:
        hint = f" ({e.hint})" if e.hint else ""
        parser.raise_error(f"{e.what}{hint}", position)


def _parse_nested(parser: Parser, shape: tuple[int, ...], numbers: list[int]) -> None:
    if parser.parse_optional_punctuation("[") is None:
        number = parser.parse_integer(allow_boolean=False)
        if not -128 <= number <= 127:
            parser.raise_error(f"{number} does not fit into 8 bits")
        numbers.append(number)
        return
    if not shape:
        parser.raise_error("the data is nested deeper than the type")
    count = 0
    while True:
        before = len(numbers)
        _parse_nested(parser, shape[1:], numbers)
        if len(numbers) - before != prod(shape[1:]):
            parser.raise_error(f"expected {show(shape[1:])} integers here")
        count += 1
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation("]")
    if count != shape[0]:
        parser.raise_error(f"expected {shape[0]} entries, not {count}")


def _unit_scale(parser: SourceParser, name: str, position: int) -> str:
    one = DenseIntOrFPElementsAttr.from_list(TensorType(f32, []), [1.0])
    scale = f"{name}.scale"
    if scale in parser.constant_types:
        parser.raise_error(f"@{name} does not name its scale; add: scale @{scale}", position)
    parser.emit_before(ConstantOp(scale, TensorType(f32, []), one))
    parser.constant_types[scale] = TensorType(f32, [])
    return scale
