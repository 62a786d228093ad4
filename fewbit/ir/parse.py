"""Text to IR, with every op knowing its line.

`SourceParser` is xDSL's parser with four additions. Ops without a `loc(...)` get the position
where they stand, so that a verifier error points at a line. An op's own parser may ask for
helper ops in front of it (`emit_before`): that is how a spelling with symbols in place of SSA
values becomes the one canonical form. And constants that were declared are remembered, because
that spelling does not repeat their types. Floats written by their bits inside `dense<...>`, as
MLIR does for infinities, are read as such: xDSL 0.74 takes 0xFF800000 for 4286578688.0.
Whatever goes wrong leaves as one `ParseError`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import AttributeInvT, Operation, SSAValue, TypeAttribute
from xdsl.parser import AttrParser, Parser, ParserState, UnresolvedOperand
from xdsl.utils.exceptions import ParseError as SpanError
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from fewbit.errors import Error, ParseError, Place
from fewbit.ir.context import make_context
from fewbit.ir.locations import file_location, is_known

LARGE_SPLAT = 1 << 16
"""Bytes from which a splat is held as its one element: a short text must not fill the memory."""
MAX_NESTING = 200
"""Regions inside regions; deeper text is refused rather than left to exhaust the stack."""


class HexadecimalElement(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of a dense literal in hexadecimal: of a float, its bits."""

    def to_type(
        self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType[Any]
    ) -> Any:
        if not isinstance(type, AnyFloat) or not isinstance(self.value, int):
            return super().to_type(parser, type)
        size = type.compile_time_size
        if not 0 <= self.value < 1 << 8 * size:
            parser.raise_error(f"these are not the bits of a {type}", self.span)
        return next(type.iter_unpack(self.value.to_bytes(size, "little")))


class SourceLexer(MLIRLexer):
    # xDSL's own expression backtracks without end on a string that is not closed.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class SourceText:
    """A text that knows its lines."""

    def __init__(self, text: str, name: str, first_line: int = 1) -> None:
        self.text = text
        self.name = name
        self._first_line = first_line
        self._starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        return Place(file=self.name, line=line + self._first_line - 1, column=column)


class SourceParser(Parser):
    def __init__(self, ctx: Context, source: SourceText) -> None:
        super().__init__(ctx, "", source.name)
        self._parser_state = ParserState(SourceLexer(Input(source.text, source.name)))
        self.source = source
        self.constant_types: dict[str, TypeAttribute] = {}
        self.constant_scales: dict[str, str] = {}
        self.constant_zero_points: dict[str, str] = {}
        self.constant_offsets: dict[str, str] = {}
        self._given_scale = False
        self._missing_scale: int | None = None
        self._uses: dict[str, Span] = {}
        self._pending: list[Operation] = []
        self._ready: deque[Operation] = deque()
        self._depth = 0

    def emit_before(self, op: Operation) -> None:
        """Put `op` in front of the op that is being parsed."""
        self._pending.append(op)

    def note_scale(self, *, given: bool, offset: int) -> None:
        """Keep track of few-bit weights with and without a scale.

        A text may leave out all scales, as the dialect's first examples did; then integers stand
        for themselves. One that gives some and not others has lost one.
        """
        self._given_scale |= given
        if not given and self._missing_scale is None:
            self._missing_scale = offset
        if self._given_scale and self._missing_scale is not None:
            self.raise_error(
                "a few-bit weight without its scale, in a text where others have theirs",
                self._missing_scale,
            )

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        self._uses.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def _refuse_undefined(self) -> None:
        for name in self.forward_ssa_references:
            if name in self._uses:
                self.raise_error(f"%{name} is used but not defined", self._uses[name])

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        if self._current_token.kind is MLIRTokenKind.EOF:
            return ModuleOp([])
        try:
            module = super().parse_module(allow_implicit_module)
        except SpanError as e:
            if "used but not defined" in e.msg:
                self._refuse_undefined()
            raise
        # The last op of a text without `module { }` may still wait behind its helpers.
        module.body.block.add_ops(self._ready)
        return module

    def parse_optional_operation(self) -> Operation | None:
        if self._ready:
            return self._ready.popleft()
        op = super().parse_optional_operation()
        if op is None or not self._pending:
            return op
        for helper in self._pending:
            helper.location = op.location
        self._ready.extend([*self._pending[1:], op])
        first = self._pending[0]
        self._pending = []
        return first

    def _get_op_by_name(self, name: str) -> type[Operation]:
        known = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if known is not None:
            return known
        start = self.lexer.input.content.rfind(name, 0, self.pos)
        close = get_close_matches(name, [op.name for op in self.ctx.loaded_ops], 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        self.raise_error(f"there is no op {name}{hint}", start, start + len(name))

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        start = self.pos
        splat = self._parse_optional_splat(type)
        if splat is not None:
            return splat
        self._resume_from(start)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _parse_optional_splat(self, type: Any) -> DenseIntOrFPElementsAttr | None:
        """Return one element, as a number or by its bytes, that stands for many."""
        self.parse_punctuation("<", " in dense attribute")
        if self._current_token.kind in (MLIRTokenKind.L_SQUARE, MLIRTokenKind.GREATER):
            return None
        data = self.parse_optional_str_literal()
        element = self._parse_tensor_literal_element() if data is None else None
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        size: int = type.element_type.compile_time_size
        if prod(type.get_shape()) * size < LARGE_SPLAT or -1 in type.get_shape():
            return None
        if element is None:
            if data is None or len(data) != len("0x") + 2 * size:
                return None
            return DenseIntOrFPElementsAttr(type, BytesAttr(bytes.fromhex(data[2:])))
        value: Any = element.to_type(self, type.element_type)
        one: Any = DenseIntOrFPElementsAttr.from_list(TensorType(type.element_type, [1]), [value])
        return DenseIntOrFPElementsAttr(type, one.data)

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        hexadecimal = self._current_token.text[:2] in ("0x", "0X")
        element = super()._parse_tensor_literal_element()
        if not hexadecimal:
            return element
        return HexadecimalElement(element.is_negative, element.value, element.span)

    def parse_operation(self) -> Operation:
        if self._depth >= MAX_NESTING:
            self.raise_error(f"regions are nested more than {MAX_NESTING} deep")
        start = self.pos
        self._depth += 1
        op = super().parse_operation()
        self._depth -= 1
        if not is_known(op.location):
            place = self.source.place(start)
            op.location = file_location(self.source.name, place.line or 1, place.column or 1)
        return op


def parse_module(
    text: str, name: str = "<text>", ctx: Context | None = None, first_line: int = 1
) -> ModuleOp:
    """Parse a module (its `module { }` may be left out). Not verified: see `fewbit.ir.verify`."""
    if "\0" in text:
        raise ParseError("the text contains a NUL character", place=Place(file=name))
    source = SourceText(text, name, first_line)
    try:
        parser = SourceParser(ctx or make_context(), source)
    except SpanError as e:
        raise _locate(e, source) from e
    try:
        return parser.parse_module()
    except SpanError as e:
        raise _locate(e, source) from e
    except Error as e:
        place = source.place(parser.pos)
        raise e.at(file=name, line=place.line, column=place.column) from None
    except RecursionError as e:
        raise ParseError(
            "the text nests too deeply",
            place=Place(file=name),
            hint="split types, attributes or regions that contain each other many times over",
        ) from e
    except _PARSER_FAULTS as e:
        # xDSL raises plain Python exceptions from constructors and some attribute parsers.
        raise ParseError(_first_line(e), place=source.place(parser.pos)) from e


def _locate(e: SpanError, source: SourceText) -> ParseError:
    what = e.msg.strip() or "unexpected text"
    return ParseError(what, place=source.place(e.span.start), excerpt=_excerpt(e.span))


def parse_file(path: str | Path, ctx: Context | None = None) -> ModuleOp:
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise ParseError(
            f"cannot read the file: {e.strerror or e}", place=Place(file=str(path))
        ) from e
    except UnicodeDecodeError as e:
        raise ParseError(
            "the file is not text in UTF-8",
            place=Place(file=str(path)),
            hint="MLIR bytecode is not read; print the module as text first",
        ) from e
    return parse_module(text, str(path), ctx)


_PARSER_FAULTS = (
    VerifyException,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    OverflowError,
    ArithmeticError,
)


def _first_line(e: Exception) -> str:
    return next((line for line in str(e).splitlines() if line.strip()), type(e).__name__)


EXCERPT_WIDTH = 100


def _excerpt(span: Span[str] | Span[bytes]) -> str:
    """Return the source line with carets under the span; of a long line, the part around it."""
    text = span.input.content
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.start)
    line = text[start : end if end >= 0 else len(text)].replace("\t", " ")
    column = span.start - start
    first = max(0, column - EXCERPT_WIDTH * 3 // 4) if len(line) > EXCERPT_WIDTH else 0
    shown = line[first : first + EXCERPT_WIDTH]
    before = "…" if first else ""
    after = "…" if first + EXCERPT_WIDTH < len(line) else ""
    offset = column - first
    width = max(1, min(span.end - span.start, len(shown) - offset))
    return f"  {before}{shown}{after}\n  {' ' * (offset + len(before))}{'^' * width}"
