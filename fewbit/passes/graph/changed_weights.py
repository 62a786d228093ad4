"""Weights that a fold replaces: a program's constants, read as arrays and given new values.

A constant keeps its name when it changes, unless something else reads it too; then the layer that
changes it gets one of its own. The store only grows, since a stored weight never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from itertools import chain, count
from typing import Any, cast

import numpy.typing as npt
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.mico import ConstantOp, GetConstantOp, RefAttr, element_width
from fewbit.interpreter.mico.constants import constant_value
from fewbit.interpreter.values import dtype_of
from fewbit.ir.symbols import SymbolTable, value_name
from fewbit.numerics import pack
from fewbit.program.derived import Derivation
from fewbit.program.program import Program

Array = npt.NDArray[Any]


class ChangedWeights:
    """A program whose constants are changed in place. Use it under its symbol table."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.symbols = SymbolTable(program.module)
        self._readers = Counter(op.symbol.root_reference.data for op in self._reads())

    def _reads(self) -> list[GetConstantOp]:
        return [op for op in self.program.module.walk() if isinstance(op, GetConstantOp)]

    def read(self, value: SSAValue) -> Array:
        """Return the values of a constant that is read; few-bit integers unpacked."""
        return constant_value(constant_of(value), self.program.store)

    def change(self, old: SSAValue, values: Array, reader: Operation) -> SSAValue:
        """Return what `reader` reads in place of a constant: that constant, with other values."""
        constant = constant_of(old)
        if self._readers[constant.sym_name.data] == 1:
            constant.properties["value"] = self._store(constant.sym_name.data, values, old.type)
            return old
        return self.add(constant.sym_name.data, values, old.type, reader, like=constant)

    def add(
        self,
        name: str,
        values: Array,
        type: Attribute,
        reader: Operation,
        like: ConstantOp | None = None,
        derivation: Derivation | None = None,
    ) -> SSAValue:
        """Return a read of a new constant for `reader`, with the scale of the one it is `like`."""
        name = _fresh(name, self.symbols)
        stored = self._store(name, values, type)
        if derivation is not None:
            self.program.store.note_derivation(stored.key, derivation)
        constant = ConstantOp(name, cast("TensorType[Attribute]", type), stored)
        if like is not None:
            constant.properties = {**like.properties, **constant.properties}
        constant.location = reader.location
        top = self.program.module.body.block
        Rewriter.insert_op(constant, InsertPoint.at_start(top))
        self.symbols.add(constant)
        return _read(constant, reader)

    def redefine(self, name: str, values: Array, type: Attribute, reader: Operation) -> SSAValue:
        """Return a read, for `reader`, of a constant that has another type from now on.

        Nothing else may read it.
        """
        constant = self.symbols[name]
        constant.properties["type"] = type
        constant.properties["value"] = self._store(name, values, type)
        return _read(cast(ConstantOp, constant), reader)

    def read_again(self, value: SSAValue, reader: Operation) -> SSAValue:
        """Return another read of a constant that is read already."""
        return _read(constant_of(value), reader)

    def _store(self, name: str, values: Array, type: Attribute) -> RefAttr:
        width = element_width(type)
        if width is None:
            stored = values.astype(dtype_of(type), copy=False)
        else:
            stored = pack(values.reshape(values.shape[0], -1), width)
        reference = self.program.store.add(_fresh(name, self.program.store), stored)
        return RefAttr(reference.key, reference.sha256)

    def sweep(self) -> None:
        """Remove reads that have lost their reader, and constants that have lost their reads.

        A constant of few-bit integers names its scale, which stays and goes with it.
        """
        for op in self._reads():
            if not op.result.uses:
                Rewriter.erase_op(op)
        read = {op.symbol.root_reference.data for op in self._reads()}
        lost = self._readers.keys() - read
        kept = read | self._named_by(self.symbols.keys() - lost)
        for name in (lost | self._named_by(lost)) - kept:
            Rewriter.erase_op(self.symbols[name])

    def _named_by(self, names: Iterable[str]) -> set[str]:
        """Return the names of the scales, zero points and offsets of constants."""
        ops = (self.symbols[name] for name in names)
        parts = [op.parts for op in ops if isinstance(op, ConstantOp)]
        return {part.root_reference.data for group in parts for part in group}


def is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, GetConstantOp)


def constant_of(value: SSAValue) -> ConstantOp:
    """Return the constant of which a value is a read."""
    return cast(GetConstantOp, value.owner).constant


def _read(constant: ConstantOp, reader: Operation) -> SSAValue:
    read = GetConstantOp(constant.sym_name.data, constant.type)
    read.location = reader.location
    read.result.name_hint = value_name(constant.sym_name.data)
    Rewriter.insert_op(read, InsertPoint.before(reader))
    return read.result


def _fresh(name: str, taken: Container[str]) -> str:
    """Return the name itself if it is free, else with the first number that is."""
    numbered = (f"{name}.{number}" for number in count(1))
    return next(n for n in chain([name], numbered) if n not in taken)
