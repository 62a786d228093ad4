"""Weights as parameters of an archive beside the program, which names them by their keys.

The text of a program stays small, and IREE maps the archive into memory. Few-bit weights are there
as packed bytes. Small constants, of at most a few hundred bytes, stay in the text: IREE computes
with them while it compiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.dialects.mico import ConstantOp, GetConstantOp
from fewbit.dialects.upstream.iree import GlobalLoadOp, GlobalOp, NamedParameterAttr
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.symbols import SymbolTable, using
from fewbit.program.artifact import Constant
from fewbit.program.program import Program
from fewbit.program.tensor_file import Array, raw_bytes

CASTS = "tensor.bitcast", "flow.tensor.bitcast"
"""What only gives packed weights another sign, ours and IREE's."""
SCOPE = "model"
"""Under which a program asks for its parameters."""
IN_TEXT = 256
"""Bytes of a constant that is written into the program."""
ALIGNMENT = 64


@dataclass
class Parameters:
    """The parameters of a program, in the order of its archive."""

    arrays: dict[str, Array] = field(default_factory=dict[str, Array])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def entries(self) -> tuple[Constant, ...]:
        """Return the manifest's entries; offsets are those of an image in this order."""
        offset = 0
        constants: list[Constant] = []
        for name, array in self.arrays.items():
            constants.append(
                Constant(name=name, offset=offset, shape=array.shape, dtype=str(array.dtype))
            )
            offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return tuple(constants)

    def write(self, path: Path) -> None:
        """Write the archive; one without any parameter is a file too."""
        from iree.runtime import ParameterIndex

        index = ParameterIndex()
        for name, array in self.arrays.items():
            index.add_buffer(name, np.frombuffer(raw_bytes(array), np.uint8))
        index.create_archive_file(str(path))


def bind_parameters(program: Program) -> Parameters:
    """Replace, in place, constants by parameters or by numbers in the text."""
    parameters = Parameters()
    with using(SymbolTable(program.module)):
        for read in [op for op in program.module.walk() if isinstance(op, GetConstantOp)]:
            _bind(program, read, parameters)
    for op in list(program.module.body.block.ops):
        if isinstance(op, ConstantOp):
            Rewriter.erase_op(op)
    return parameters


def _bind(program: Program, read: GetConstantOp, parameters: Parameters) -> None:
    constant = read.constant
    name = constant.sym_name.data
    type = _signless(read.result.type)
    array = parameters.arrays.get(name)
    if array is None:
        array = constant_value(constant, program.store)
    new: Operation
    if array.nbytes <= IN_TEXT and array.dtype.kind in "if":
        data = DenseIntOrFPElementsAttr(type, BytesAttr(array.tobytes()))  # pyright: ignore[reportArgumentType]
        new = arith.ConstantOp(data)
    else:
        if name not in parameters.arrays:
            parameters.arrays[name] = array
            value = NamedParameterAttr(StringAttr(SCOPE), StringAttr(name), type)
            declared = GlobalOp(name, type, value)
            declared.location = constant.location
            Rewriter.insert_op(declared, InsertPoint.before(constant))
        new = GlobalLoadOp(name, type)
    new.location = read.location
    new.results[0].name_hint = read.result.name_hint
    Rewriter.insert_op(new, InsertPoint.before(read))
    _replace(read.result, new.results[0])
    Rewriter.erase_op(read)


def _signless(type: TensorType[Attribute]) -> TensorType[Attribute]:
    """Return a type without signs: these are a matter of ops, not of bytes."""
    element = type.element_type
    if isa(element, IntegerType) and element.signedness.data != Signedness.SIGNLESS:
        return TensorType(IntegerType(element.bitwidth), type.shape)
    return type


def _name_of(op: Operation) -> str:
    """Return an op's name, if it is one of IREE's own, too."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _replace(old: SSAValue, new: SSAValue) -> None:
    """Replace a value; where it is only cast to another sign, read it as that at once."""
    if old.type != new.type:
        for use in list(old.uses):
            cast_op = use.operation
            assert _name_of(cast_op) in CASTS, "only packed weights are unsigned"
            cast_op.results[0].replace_all_uses_with(new)
            Rewriter.erase_op(cast_op)
    old.replace_all_uses_with(new)
