"""A program as IREE reads it: text in generic form, with locations that lead back to its layers.

IREE's messages name a file, a line and a column, and no layer. So the text's locations are numbers
into a table of the places that the program's own ops come from: `loc("conv1"("fewbit":17:1))`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NameLoc, StringAttr

from fewbit.errors import Place
from fewbit.ir.locations import place_of
from fewbit.ir.text import print_module

FILE = "fewbit"
"""What IREE takes for the name of the file."""
REMAINDER = "arith.remf"
FUNCTIONS = ("math.", REMAINDER)
"""How ops begin that become calls of functions of C, where the processor has no instruction."""
_NUMBER = re.compile(rf'"{FILE}":(\d+):1\)')
_OP = re.compile(r'\s*(?:%[^=]+ = )?"(\w+\.[\w.]+)"\(')


@dataclass(frozen=True)
class Source:
    """A program's text for IREE, with the places of its ops."""

    text: str
    places: list[Place] = field(default_factory=list[Place])
    """By the number of the line that IREE takes them for."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """That the text refers to, by their names."""

    def place(self, line: int) -> Place:
        return self.places[line] if 0 <= line < len(self.places) else Place()

    def place_at(self, line: int) -> Place:
        """Return the place of the op that begins on a line; its location may follow later."""
        lines = self.text.splitlines()[line - 1 :]
        match = next((number for text in lines if (number := _NUMBER.search(text))), None)
        op = _OP.match(lines[0]) if lines else None
        known = Place() if match is None else self.place(int(match[1]))
        return replace(known, op=op[1] if op else known.op)

    def place_of_function(self, symbol: str) -> Place:
        """Return the place of the op that becomes a call of a function of C: `sin`, `powf`."""
        names = {f"math.{word}" for word in (symbol, f"{symbol}f", symbol.removesuffix("f"))}
        names |= {REMAINDER} if symbol.startswith("fmod") else set[str]()
        candidates = [place for place in self.places if (place.op or "").startswith(FUNCTIONS)]
        exact = [place for place in candidates if place.op in names]
        return next(iter(exact or candidates), Place())


def to_source(
    module: ModuleOp, executable: str = "", files: Mapping[str, bytes] | None = None
) -> Source:
    """Print a module, whose locations are replaced in place, with an executable in front."""
    numbers: dict[Place, int] = {}
    for op in module.walk():
        place = place_of(op)
        number = numbers.setdefault(place, len(numbers))
        inner = FileLineColLoc(StringAttr(FILE), IntAttr(number), IntAttr(1))
        op.location = inner if place.layer is None else NameLoc(StringAttr(place.layer), inner)
    text = print_module(module, generic=True, locations=True)
    head, brackets, body = text.partition("({\n")
    return Source(f"{head}{brackets}{executable}{body}", list(numbers), files or {})
