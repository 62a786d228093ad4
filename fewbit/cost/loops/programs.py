"""The loop nests of a whole program, of a file of MLIR, or of a folder of IREE's dumps.

A program is lowered to linalg as for IREE. Weights of few bits are unpacked by ops of their own
there, so an operand that comes from a constant alone is as wide as the bits that are stored for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from fewbit.cost.loops.dumps import read_dump
from fewbit.cost.loops.nest import Access, LoopNest
from fewbit.cost.loops.read import (
    Listing,
    Unmodelled,
    bits_of,
    loop_ops,
    name_of,
    read_nest,
)
from fewbit.errors import UsageError

CONSTANTS = ("util.global.load", "arith.constant", "mico.get_constant", "flow.tensor.constant")


@dataclass(frozen=True)
class Source:
    """Where nests come from: a program, or one dump."""

    name: str
    listing: Listing


def list_path(path: Path, dynamic: int = 1) -> list[Source]:
    """List the nests of a file that IREE dumped or reads, or of all files in a folder."""
    files = sorted(path.glob("*.mlir")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"'{path}' has no files of MLIR")
    return [Source(file.stem, list_module(read_dump(file), dynamic)) for file in files]


def list_module(module: ModuleOp, dynamic: int = 1) -> Listing:
    """List nests as `list_nests` does, with constant operands as narrow as they are stored."""
    nests: list[LoopNest] = []
    others: list[Unmodelled] = []
    for op in loop_ops(module):
        nest = read_nest(op, dynamic)
        if isinstance(nest, LoopNest):
            nests.append(_narrow(op, nest))
        else:
            others.append(nest)
    return Listing(tuple(nests), tuple(others))


def _narrow(op: Operation, nest: LoopNest) -> LoopNest:
    if not nest.multiplies:
        return nest
    used = [
        value
        for value, argument in zip(op.operands, op.regions[0].blocks[0].args, strict=True)
        if argument.uses.get_length()
    ]
    inputs = len(nest.inputs)
    pairs = zip(nest.accesses, used, strict=False)
    changed = [
        _as_stored(access, value) if place < inputs else access
        for place, (access, value) in enumerate(pairs)
    ]
    return replace(nest, accesses=(*changed, *nest.accesses[len(changed) :]))


def _as_stored(access: Access, value: SSAValue) -> Access:
    stored = sum(_bits(constant) for constant in _constants_behind(value))
    if not stored or not prod(access.shape):
        return access
    width = -(-stored // prod(access.shape))
    return replace(access, bits=width) if 0 < width < access.bits else access


def _constants_behind(value: SSAValue) -> list[SSAValue]:
    """Return the integer constants behind a value; none where it depends on anything else."""
    constants: dict[SSAValue, None] = {}
    pending, seen = [value], set[SSAValue]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        op: Any = at.owner
        if not isinstance(op, Operation):
            return []
        if name_of(op) in CONSTANTS:
            if _is_integers(at):
                constants[at] = None
            continue
        pending += _tensors(op)
    return list(constants)


def _tensors(op: Operation) -> Iterator[SSAValue]:
    """Yield the tensors that are read; destinations only if they are not empty or filled."""
    for value in op.operands:
        owner: Any = value.owner
        if isinstance(owner, Operation) and name_of(owner) in ("tensor.empty", "linalg.fill"):
            continue
        if isinstance(value.type, TensorType):
            yield value


def _is_integers(value: SSAValue) -> bool:
    type = value.type
    return isinstance(type, TensorType) and str(type.element_type).startswith(("i", "ui", "si"))  # pyright: ignore


def _bits(value: SSAValue) -> int:
    type: Any = value.type
    return prod(type.get_shape()) * bits_of(str(type.element_type))
