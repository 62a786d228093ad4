"""Modules as text: the readable form, or the generic form that every MLIR tool reads."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer


def print_module(
    module: ModuleOp,
    *,
    generic: bool = False,
    locations: bool = False,
    properties_as_attributes: bool = False,
) -> str:
    """The text of `module`, ending in a newline.

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
    printer = Printer(
        stream=stream,
        print_generic_format=generic,
        print_properties_as_attributes=properties_as_attributes,
        print_debuginfo=locations,
    )
    printer.print_op(op)
    stream.write("\n")
    return stream.getvalue()
