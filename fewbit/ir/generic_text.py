"""The text in which programs cross over to upstream MLIR: generic form, with locations.

It is for a parser, not for readers, so values and blocks are mere numbers and nothing is indented.
xDSL's printer keeps count of columns, scopes and names, which is most of its time; a large program
is written several times faster here. Texts of attributes are those of our printer, each made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fewbit.ir.text import ExactPrinter

UNREGISTERED_NAME = "op_name__"
"""The attribute in which xDSL keeps the name of an op that it does not know."""


def generic_text(op: Operation) -> str:
    """Return the text of an op and all within it, for upstream's parser."""
    writer = _Writer()
    writer.write(op)
    return "".join(writer.parts)


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self._values: dict[SSAValue, str] = {}
        self._blocks: dict[Block, str] = {}
        self._texts: dict[int, str] = {}
        """Texts of attributes by identity: to hash a type takes as long as to print it."""
        self._printer = ExactPrinter(StringIO(), print_generic_format=True, print_debuginfo=True)

    def write(self, op: Operation) -> None:
        parts, attributes, name = self.parts, op.attributes, op.name
        if isinstance(op, UnregisteredOp):
            name = op.op_name.data
            attributes = {k: v for k, v in attributes.items() if k != UNREGISTERED_NAME}
        if op.results:
            parts.append(f"{self._names(op.results)} = ")
        parts.append(f'"{name}"({self._names(op.operands)})')
        if op.successors:
            parts.append(f"[{', '.join(map(self._block, op.successors))}]")
        if op.properties:
            parts.append(f" <{self._dictionary(op.properties)}>")
        if op.regions:
            parts.append(" (")
            for number, region in enumerate(op.regions):
                parts.append(", " if number else "")
                self._region(region)
            parts.append(")")
        if attributes:
            parts.append(f" {self._dictionary(attributes)}")
        given, results = self._types(op.operands), self._types(op.results)
        parts.append(f" : ({given}) -> ({results}) {self._text(op.location)}\n")

    def _region(self, region: Region) -> None:
        self.parts.append("{\n")
        for block in region.blocks:
            self.parts.append(self._block(block))
            if block.args:
                arguments = (
                    f"{self._value(each)}: {self._text(each.type)} {self._text(each.location)}"
                    for each in block.args
                )
                self.parts.append(f"({', '.join(arguments)})")
            self.parts.append(":\n")
            for op in block.ops:
                self.write(op)
        self.parts.append("}")

    def _value(self, value: SSAValue) -> str:
        name = self._values.get(value)
        if name is None:
            name = self._values[value] = f"%{len(self._values)}"
        return name

    def _block(self, block: Block) -> str:
        name = self._blocks.get(block)
        if name is None:
            name = self._blocks[block] = f"^bb{len(self._blocks)}"
        return name

    def _names(self, values: Iterable[SSAValue]) -> str:
        return ", ".join([self._value(value) for value in values])

    def _types(self, values: Iterable[SSAValue]) -> str:
        return ", ".join([self._text(value.type) for value in values])

    def _dictionary(self, attributes: Mapping[str, Attribute]) -> str:
        entries = [f'"{name}" = {self._text(each)}' for name, each in attributes.items()]
        return f"{{{', '.join(entries)}}}"

    def _text(self, attribute: Attribute) -> str:
        text = self._texts.get(id(attribute))
        if text is None:
            text = self._texts[id(attribute)] = self._printer.text_of(attribute)
        return text
