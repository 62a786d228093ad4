"""A program as IREE reads it: text in generic form, with locations that lead back to its layers.

IREE's messages name a file, a line and a column, and no layer. So the text's locations are numbers
into a table of the places that the program's own ops come from: `loc("conv1"("fewbit":17:1))`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NameLoc, StringAttr

from fewbit.errors import Place
from fewbit.ir.locations import place_of
from fewbit.ir.text import print_module

FILE = "fewbit"
"""What IREE takes for the name of the file."""


@dataclass(frozen=True)
class Source:
    text: str
    places: list[Place] = field(default_factory=list[Place])
    """By the number of the line that IREE takes them for."""

    def place(self, line: int) -> Place:
        return self.places[line] if 0 <= line < len(self.places) else Place()


def to_source(module: ModuleOp) -> Source:
    """The text of a module, whose locations are replaced in place."""
    numbers: dict[Place, int] = {}
    for op in module.walk():
        place = place_of(op)
        number = numbers.setdefault(place, len(numbers))
        inner = FileLineColLoc(StringAttr(FILE), IntAttr(number), IntAttr(1))
        op.location = inner if place.layer is None else NameLoc(StringAttr(place.layer), inner)
    return Source(print_module(module, generic=True, locations=True), list(numbers))
