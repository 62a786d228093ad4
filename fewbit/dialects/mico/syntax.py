"""The one textual form of the dialect's ops, and the older spellings that it accepts.

    %y = mico.bitlinear(%x, %w, %b) weight_scale(%s) {weight_bits = 4 : i32} : (T, T, T, T) -> T

Operands stand in the parentheses, but those in `CLAUSES` follow by name; an op defines the latter
last, so that types are in operand order. Also accepted, and printed back in the form above:
constants as symbols (`@fc1_weight`) in place of operands, whose types are then left out; integers
without their type (`weight_bits = 4`); a single type without parentheses (`: T -> T`); attributes
that have a default left out. An unknown attribute is an error: a misspelt one would otherwise be
ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from typing import ClassVar, Self, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OptOperandDef,
    OptResultDef,
    VarOperandDef,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from fewbit.dialects.mico.constants import GetConstantOp
from fewbit.dialects.mico.shapes import require
from fewbit.dialects.mico.types import TernaryType, element_type, shape_of
from fewbit.dialects.traits import Canonicalizes
from fewbit.errors import UsageError
from fewbit.ir.parse import SourceParser
from fewbit.ir.symbols import value_name
from fewbit.numerics.widths import Width

WrittenOperand = UnresolvedOperand | SymbolRefAttr
OperandValues = dict[str, list[SSAValue]]
Properties = dict[str, Attribute]
Value = Attribute | Width | bool | int | float | str | Sequence[int] | None
LayerOpT = TypeVar("LayerOpT", bound="LayerOp")
_PLACEHOLDER = TensorType(f32, [])
SEGMENTS = AttrSizedOperandSegments.attribute_name


class LayerOp(IRDLOperation):
    """Base of the dialect's ops: their text, how they are built, and the rule of their results.

    An op says in `output_types` what its results are, given its operands and attributes. That one
    rule serves to build it (`BitLinearOp.of(x, w, weight_scale=s, act_bits=8)`) and to verify it.
    """

    CLAUSES: ClassVar[tuple[str, ...]] = ()
    """Operands written as `name(%value)` after the parentheses, in the order of definition."""

    DEFAULTS: ClassVar[dict[str, Attribute]] = {}
    """Attributes that may be left out in the text; the IR always has them."""

    traits = traits_def(Pure(), Canonicalizes())

    @classmethod
    def attribute_names(cls) -> list[str]:
        """Return the op's own attributes, those of its base classes first."""
        known = cls.get_irdl_definition().properties
        depth = {name: i for i, base in enumerate(cls.__mro__) for name in vars(base)}
        names = [name for name in known if name != SEGMENTS]
        return sorted(names, key=lambda name: -depth[name])

    def output_type(self) -> Attribute:
        """Return the type of the only result."""
        raise NotImplementedError

    def output_types(self) -> Sequence[Attribute]:
        return [self.output_type()]

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        """Add attributes that follow from the types; `results` is empty while building."""

    @classmethod
    def fill_operands(cls, parser: SourceParser, operands: OperandValues) -> None:
        """Add operands that an older spelling leaves out."""

    @classmethod
    def of(
        cls,
        *positional: SSAValue | Operation | None,
        result_types: Sequence[Attribute] | None = None,
        **named: SSAValue | Operation | Value,
    ) -> Self:
        """Build the op from operands in their order, and clauses and attributes by name.

        Attributes may be plain Python values; result types are found where not given.
        """
        operands = _operands_by_name(cls, positional)
        properties = dict(cls.DEFAULTS)
        for name, value in named.items():
            if value is None:
                continue
            is_operand = isinstance(value, SSAValue | Operation)
            known = cls.CLAUSES if is_operand else cls.attribute_names()
            if name not in known:
                raise UsageError(f"{cls.name} has no '{name}'", hint=f"it has {', '.join(known)}")
            if is_operand:
                operands[name] = [SSAValue.get(value)]
            else:
                properties[name] = _as_attribute(value)
        cls.fill_attributes(operands, properties, result_types or [])
        if result_types is not None:
            return _create(cls, operands, result_types, properties)
        count = len(cls.get_irdl_definition().results)
        op = _create(cls, operands, [_PLACEHOLDER] * count, properties)
        op.results = SSAValues(OpResult(t, op, i) for i, t in enumerate(op.output_types()))
        return op

    def verify_(self) -> None:
        for name in self.attributes:
            if "." not in name:
                raise VerifyException(f"has no attribute '{name}'; those of others have a dot")
        expected = self.output_types()
        if len(expected) != len(self.results):
            raise VerifyException(f"has {len(self.results)} results, expected {len(expected)}")
        for type, result in zip(expected, self.results, strict=True):
            if element_type(type) != element_type(result.type):
                raise VerifyException(f"the result is {result.type}, expected {type}")
            require(shape_of(type), shape_of(result.type), "the result")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        positional = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_operand(parser), " in operand list"
        )
        written = _assign(parser, cls, positional, start)
        for name in cls.CLAUSES:
            if parser.parse_optional_keyword(name):
                with parser.in_parens():
                    written[name] = [_parse_operand(parser)]
        properties, attributes = _parse_attributes(parser, cls)
        parser.parse_punctuation(":", " before the types")
        position = parser.pos
        input_types, result_types = _parse_types(parser)
        _check_results(parser, cls, result_types, position)
        operands = _resolve(parser, written, input_types, position)
        if isinstance(parser, SourceParser):
            cls.fill_operands(parser, operands)
        try:
            cls.fill_attributes(operands, properties, result_types)
        except VerifyException as e:
            parser.raise_error(str(e), start, position)
        op = _create(cls, operands, result_types, properties)
        op.attributes = attributes
        return op

    def print(self, printer: Printer) -> None:
        named = [
            (name, value) for name in self.CLAUSES if (value := getattr(self, name)) is not None
        ]
        positional = self.operands[: len(self.operands) - len(named)]
        with printer.in_parens():
            printer.print_list(positional, printer.print_ssa_value)
        for name, value in named:
            printer.print_string(f" {name}(")
            printer.print_ssa_value(value)
            printer.print_string(")")
        self._print_attributes(printer)
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.results[0].type)
            return
        with printer.in_parens():
            printer.print_list(self.result_types, printer.print_attribute)

    def _print_attributes(self, printer: Printer) -> None:
        names = self.attribute_names()
        entries = {name: self.properties[name] for name in names if name in self.properties}
        entries |= self.attributes
        if not entries:
            return
        printer.print_string(" ")
        with printer.in_braces():
            printer.print_list(
                entries.items(), lambda entry: _print_entry(printer, entry[0] in names, *entry)
            )


def _create(
    op: type[LayerOpT],
    operands: OperandValues,
    result_types: Sequence[Attribute],
    properties: Properties,
) -> LayerOpT:
    """Build an op, several times as fast as `op.build`, since operands are known by name."""
    definition = op.get_irdl_definition()
    fields = [operands.get(name, []) for name, _ in definition.operands]
    if SEGMENTS in definition.properties:
        properties = properties | {SEGMENTS: _segment_sizes(*map(len, fields))}
    return op.create(
        operands=[value for field in fields for value in field],
        result_types=result_types,
        properties=properties,
    )


@cache
def _segment_sizes(*sizes: int) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def _operands_by_name(
    op: type[LayerOp], positional: Sequence[SSAValue | Operation | None]
) -> OperandValues:
    remaining = [None if value is None else SSAValue.get(value) for value in positional]
    operands: OperandValues = {}
    fields = op.get_irdl_definition().operands
    for name, kind in fields:
        if name in op.CLAUSES or not remaining:
            continue
        several = isinstance(kind, VarOperandDef) and not isinstance(kind, OptOperandDef)
        taken, remaining = (remaining, []) if several else (remaining[:1], remaining[1:])
        operands[name] = [value for value in taken if value is not None]
    optional = {name for name, kind in fields if isinstance(kind, VarOperandDef)}
    missing = [name for name, _ in fields if name not in optional and not operands.get(name)]
    if remaining or missing:
        what = "too many operands" if remaining else f"no '{missing[0]}'"
        names = ", ".join(name for name, _ in fields if name not in op.CLAUSES)
        raise UsageError(f"{op.name} was given {what}", hint=f"its operands are {names}")
    return operands


def _as_attribute(value: Value) -> Attribute:
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Width):
        return TernaryType() if value.is_ternary else _integer(value.bits)
    assert value is not None
    return int_array(*value)


@cache
def _integer(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


def int_array(*values: int) -> ArrayAttr[IntegerAttr[IntegerType]]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


def ints(array: ArrayAttr[IntegerAttr[IntegerType]]) -> tuple[int, ...]:
    return tuple(entry.value.data for entry in array)


def pairs(array: ArrayAttr[IntegerAttr[IntegerType]]) -> tuple[tuple[int, int], ...]:
    """Return a flat list of befores and afters as pairs."""
    flat = ints(array)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def both_sides(padding: Attribute, rank: int) -> Attribute:
    """Write out padding of one number a dimension for both of its sides."""
    if not isa(padding, ArrayAttr[IntegerAttr[IntegerType]]) or len(padding) != rank:
        return padding
    return int_array(*(value for value in ints(padding) for _ in range(2)))


def read_constant(parser: Parser, name: str, position: int | None = None) -> SSAValue:
    """Emit a read of a constant in front of the op being parsed."""
    if not isinstance(parser, SourceParser):
        parser.raise_error(
            f"constants as operands are read by fewbit-opt only; write mico.get_constant @{name}"
        )
    type = parser.constant_types.get(name)
    if type is None:
        close = get_close_matches(name, parser.constant_types, 1)
        hint = f"; did you mean @{close[0]}?" if close else ""
        parser.raise_error(
            f"no mico.constant @{name} is declared above{hint}",
            *(() if position is None else (position, position + len(name) + 1)),
        )
    read = GetConstantOp(name, type)
    read.result.name_hint = value_name(name.replace(".", "_"))
    parser.emit_before(read)
    return read.result


def _parse_operand(parser: Parser) -> tuple[int, WrittenOperand]:
    position = parser.pos
    operand = parser.parse_optional_unresolved_operand()
    if operand is not None:
        return position, operand
    symbol = parser.parse_optional_symbol_name()
    if symbol is None:
        parser.raise_error("expected an operand (%value) or a constant (@symbol)")
    return position, SymbolRefAttr(symbol)


def _assign(
    parser: Parser,
    op: type[LayerOp],
    positional: list[tuple[int, WrittenOperand]],
    start: int,
) -> dict[str, list[tuple[int, WrittenOperand]]]:
    """Give the operands in the parentheses to the op's fields, in order."""
    remaining = list(positional)
    written: dict[str, list[tuple[int, WrittenOperand]]] = {}
    for name, kind in op.get_irdl_definition().operands:
        if name in op.CLAUSES:
            continue
        if isinstance(kind, OptOperandDef):
            written[name], remaining = remaining[:1], remaining[1:]
        elif isinstance(kind, VarOperandDef):
            written[name], remaining = remaining, []
        elif not remaining:
            parser.raise_error(f"{op.name} needs an operand '{name}'", start)
        else:
            written[name], remaining = remaining[:1], remaining[1:]
    if remaining:
        parser.raise_error(
            f"{op.name} takes {len(positional) - len(remaining)} operands", remaining[0][0]
        )
    return written


def _parse_attributes(
    parser: Parser, op: type[LayerOp]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    position = parser.pos
    properties: dict[str, Attribute] = dict(op.DEFAULTS)
    attributes: dict[str, Attribute] = {}
    known = op.attribute_names()
    for name, value in parser.parse_optional_attr_dict().items():
        if name in known:
            properties[name] = _normalize(value)
        elif "." in name:
            attributes[name] = value
        else:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean '{close[0]}'?" if close else f"; it has: {', '.join(known)}"
            hint = hint if known else ""
            parser.raise_error(f"{op.name} has no attribute '{name}'{hint}", position)
    return properties, attributes


def _normalize(value: Attribute) -> Attribute:
    """Convert integers to i32, and lists of integers to i64."""
    if isa(value, IntegerAttr[IntegerType]) and value.type == i64:
        return IntegerAttr(value.value.data, i32)
    if isa(value, ArrayAttr[IntegerAttr[IntegerType]]):
        return int_array(*ints(value))
    return value


def _parse_types(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    inputs = _parse_type_or_list(parser)
    parser.parse_punctuation("->", " before the result types")
    return inputs, _parse_type_or_list(parser)


def _parse_type_or_list(parser: Parser) -> Sequence[Attribute]:
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if several is None else several


def _resolve(
    parser: Parser,
    written: dict[str, list[tuple[int, WrittenOperand]]],
    types: Sequence[Attribute],
    position: int,
) -> OperandValues:
    flat = [operand for operands in written.values() for _, operand in operands]
    needed = sum(isinstance(operand, UnresolvedOperand) for operand in flat)
    if needed != len(types):
        parser.raise_error(f"expected {needed} operand types but got {len(types)}", position)
    remaining = iter(types)

    def value(place: int, operand: WrittenOperand) -> SSAValue:
        if isinstance(operand, SymbolRefAttr):
            return read_constant(parser, operand.root_reference.data, place)
        return parser.resolve_operand(operand, next(remaining))

    return {name: [value(*operand) for operand in operands] for name, operands in written.items()}


def _check_results(
    parser: Parser, op: type[LayerOp], types: Sequence[Attribute], position: int
) -> None:
    fields = op.get_irdl_definition().results
    least = sum(not isinstance(kind, OptResultDef) for _, kind in fields)
    if not least <= len(types) <= len(fields):
        parser.raise_error(f"{op.name} cannot have {len(types)} results", position)


def _print_entry(printer: Printer, own: bool, name: str, value: Attribute) -> None:
    printer.print_identifier_or_string_literal(name)
    printer.print_string(" = ")
    if own and isa(value, ArrayAttr[IntegerAttr[IntegerType]]):
        printer.print_string(str(list(ints(value))))
        return
    printer.print_attribute(value)
