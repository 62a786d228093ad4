"""Modules as text: the readable form, or the generic form that every MLIR tool reads.

xDSL 0.74 prints `dense<[0.0, -0.0]>` as the splat `dense<0.0>`, because it compares values; such
data is printed by its bytes here.
"""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer


class ExactPrinter(Printer):
    """A printer that keeps the signs of zeros."""

    def print_attribute(self, attribute: Attribute) -> None:
        if type(attribute) is not DenseIntOrFPElementsAttr:
            super().print_attribute(attribute)
            return
        if not mixes_zeros(attribute):
            super().print_attribute(attribute)
            return
        print_bytes(self, attribute)
        self.print_string(" : ")
        super().print_attribute(attribute.get_type())


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
