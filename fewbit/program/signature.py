"""What a program takes and gives: the names, shapes and element types of its entry function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from fewbit.dialects.mico.types import FewBitType
from fewbit.interpreter.signature import choose_function
from fewbit.interpreter.values import dtype_of, element_type, shape_of
from fewbit.ir.symbols import SymbolTable
from fewbit.program.output_names import NEW, output_names
from fewbit.program.state import updated_inputs


@dataclass(frozen=True)
class TensorSpec:
    """One input or output; a dimension that is known only at run time is None."""

    name: str
    shape: tuple[int | None, ...] | None
    """None where even the rank is known only at run time."""
    element: str
    """The element type as MLIR spells it: `f32`, `i8`, `!mico.int<4>`."""
    dtype: np.dtype[Any]
    """What numpy holds the elements in; few-bit integers are int8 there."""
    updates: str | None = None
    """The input that an output is the new value of; the two may be one array."""

    def __str__(self) -> str:
        sizes = ["*"] if self.shape is None else ["?" if d is None else str(d) for d in self.shape]
        return f"{self.name}: {'x'.join([*sizes, self.element])}"


@dataclass(frozen=True)
class Signature:
    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def is_dynamic(self) -> bool:
        """Whether some size is known only at run time."""
        shapes = [spec.shape for spec in (*self.inputs, *self.outputs)]
        return any(shape is None or None in shape for shape in shapes)

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"{self.name}({inputs}) -> ({outputs})"


def signature_of(module: ModuleOp, function: str | None = None) -> Signature:
    """Return the signature of a function, by default the entry that the interpreter runs."""
    entry = choose_function(SymbolTable(module), function)
    types = entry.function_type
    names = _distinct([a.name_hint or f"input{i}" for i, a in enumerate(entry.body.block.args)])
    inputs = [_spec(name, type) for name, type in zip(names, types.inputs, strict=True)]
    updates = {output: names[given] for output, given in updated_inputs(entry).items()}
    given = output_names(entry)
    results = [given.get(i, f"output{i}") for i in range(len(types.outputs))]
    results = _distinct([f"{NEW}{name}" if name in names else name for name in results])
    outputs = [
        _spec(name, type, updates.get(i))
        for i, (name, type) in enumerate(zip(results, types.outputs, strict=True))
    ]
    return Signature(entry.sym_name.data, tuple(inputs), tuple(outputs))


def _distinct(names: list[str]) -> list[str]:
    """Return the names, those that were there before with a mark: `x`, `x_`."""
    taken: set[str] = set()
    distinct: list[str] = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        distinct.append(name)
    return distinct


def _spec(name: str, type: Attribute, updates: str | None = None) -> TensorSpec:
    element = element_type(type)
    dtype = np.dtype(np.int8) if isinstance(element, FewBitType) else dtype_of(element)
    return TensorSpec(name, shape_of(type), str(element), dtype, updates)
