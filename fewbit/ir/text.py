"""Modules as text: the readable form, or the generic form that every MLIR tool reads.

xDSL 0.74 prints `dense<[0.0, -0.0]>` as the splat `dense<0.0>`, because it compares values; such
data is printed by its bytes here. It also prints each letter of a string by itself, and each type
as often as it stands in a module; here a string is printed at once, and the text of an attribute is
kept for the next time, because all programs pass through this printer on their way to MLIR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

_PLAIN = re.compile(rb"[ !#-\[\]-~]*")
"""Letters that stand for themselves in a string."""


@dataclass(eq=False, repr=False)
class ExactPrinter(Printer):
    """A printer that keeps the signs of zeros."""

    _texts: dict[tuple[bool, Attribute], str] = field(
        default_factory=dict[tuple[bool, Attribute], str], init=False
    )
    """Texts of attributes, which in a location are others: only the outermost is in `loc()`."""

    def print_attribute(self, attribute: Attribute) -> None:
        if type(attribute) is DenseIntOrFPElementsAttr:
            self._print_data(attribute)
            return
        text = self._texts.get((self.printing_location, attribute))
        if text is None:
            text = self._text_of(attribute)
        self.print_string(text, indent=0)

    def _text_of(self, attribute: Attribute) -> str:
        outer, self.stream = self.stream, StringIO()
        try:
            super().print_attribute(attribute)
            text = self.stream.getvalue()
        finally:
            self.stream = outer
        self._texts[self.printing_location, attribute] = text
        return text

    def text_of(self, attribute: Attribute) -> str:
        """Return the text of an attribute, which is not printed."""
        outer, self.stream = self.stream, StringIO()
        try:
            self.print_attribute(attribute)
            return self.stream.getvalue()
        finally:
            self.stream = outer

    def _print_data(self, data: DenseIntOrFPElementsAttr) -> None:
        if not mixes_zeros(data):
            super().print_attribute(data)
            return
        print_bytes(self, data)
        self.print_string(" : ")
        self.print_attribute(data.get_type())

    def print_bytes_literal(self, bytestring: bytes) -> None:
        if _PLAIN.fullmatch(bytestring) is None:
            super().print_bytes_literal(bytestring)
        else:
            self.print_string(f'"{bytestring.decode()}"')


def mixes_zeros(data: DenseIntOrFPElementsAttr) -> bool:
    """Return whether all elements are equal as numbers but not as bits."""
    raw = data.data.data
    size = len(raw) // max(len(data), 1)
    return raw != raw[:size] * len(data) and data.is_splat()


def print_bytes(printer: Printer, data: DenseIntOrFPElementsAttr) -> None:
    printer.print_string(f'dense<"0x{data.data.data.hex().upper()}">')


def print_module(
    module: ModuleOp,
    *,
    generic: bool = False,
    locations: bool = False,
    properties_as_attributes: bool = False,
) -> str:
    """Return the text of `module`, ending in a newline.

    `properties_as_attributes` prints `{}` where MLIR's generic form has `<{}>`: dialects that
    are loaded from IRDL know no properties.
    """
    return print_op(
        module,
        generic=generic,
        locations=locations,
        properties_as_attributes=properties_as_attributes,
    )


def print_op(
    op: Operation,
    *,
    generic: bool = False,
    locations: bool = False,
    properties_as_attributes: bool = False,
) -> str:
    stream = StringIO()
    printer = ExactPrinter(
        stream=stream,
        print_generic_format=generic,
        print_properties_as_attributes=properties_as_attributes,
        print_debuginfo=locations,
    )
    printer.print_op(op)
    stream.write("\n")
    return stream.getvalue()
