"""Where the constants of functions lie in the image of weights.

The entry reads the image at offsets of its own. A function that stands for parts which repeat has
its constants at the same offsets in each of several pieces, one for each call, which the call is
given: what it reads is what the first call has, made of the constants of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func

from fewbit.dialects.mico import ConstantOp, GetConstantOp
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.symbols import SymbolTable
from fewbit.program.derived import Substitution
from fewbit.program.program import Program
from fewbit.program.repeats import names_for
from fewbit.program.weight_image import WeightImage, aligned


@dataclass(frozen=True)
class PlacedConstants:
    offsets: Mapping[GetConstantOp, int]
    """Where each read finds its constant."""
    nbytes: int
    """How large the memory is that has them."""
    starts: Mapping[func.CallOp, int]
    """Where in the image this memory begins, for each call."""


def place_entry(program: Program, entry: func.FuncOp, image: WeightImage) -> PlacedConstants:
    """Place the constants of the entry, which come first or last in the whole image."""
    placed: dict[str, int] = {}
    offsets: dict[GetConstantOp, int] = {}
    for op in _reads(entry):
        name = op.symbol.root_reference.data
        if name not in placed:
            placed[name] = image.add(name, constant_value(op.constant, program.store))
        offsets[op] = placed[name]
    return PlacedConstants(offsets, image.nbytes, {})


def place_repeated(
    program: Program, function: func.FuncOp, calls: Sequence[func.CallOp], image: WeightImage
) -> PlacedConstants:
    """Place the constants of a function for each call of it."""
    symbols = SymbolTable(program.module)
    constants = {op.symbol.root_reference.data: op.constant for op in _reads(function)}
    starts: dict[func.CallOp, int] = {}
    by_names: dict[tuple[tuple[str, str], ...], int] = {}
    for call in calls:
        names = names_for(call, function)
        key = tuple(names.items())
        if key not in by_names:
            others = {old: cast(ConstantOp, symbols[new]) for old, new in names.items()}
            made = Substitution(program.store, others)
            by_names[key] = image.add_together(
                [(made.name(op), made.value(op)) for op in constants.values()]
            )
        starts[call] = by_names[key]
    offsets: dict[str, int] = {}
    nbytes = 0
    for name, op in constants.items():
        offsets[name] = nbytes
        nbytes += aligned(constant_value(op, program.store).nbytes)
    reads = {op: offsets[op.symbol.root_reference.data] for op in _reads(function)}
    return PlacedConstants(reads, nbytes, starts)


def _reads(function: func.FuncOp) -> list[GetConstantOp]:
    return [op for op in function.walk() if isinstance(op, GetConstantOp)]
