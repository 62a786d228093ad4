"""What a dispatch is called with: buffers large enough for all that it reads and writes.

Several tensors may lie in one binding, at offsets that are constants of the code or of the call.
Those of the call are chosen here, one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from fewbit.cost.loops.read import attribute_of, bits_of, name_of
from fewbit.errors import UnsupportedError

ALIGNMENT = 64
Bytes = NDArray[np.uint8]
SUBSPAN = "hal.interface.binding.subspan"
LOAD = "hal.interface.constant.load"
READ_ONLY = 1
"""A bit of a binding's flags."""
LOOKUPS = ("tensor.extract", "memref.load", "iree_linalg_ext.gather", "iree_linalg_ext.scatter")
"""Ops that read where data says, which made-up data must not."""


@dataclass(frozen=True)
class Span:
    """A part of a binding that a dispatch reads or writes."""

    binding: int
    offset: int
    shape: tuple[int, ...]
    element: str
    written: bool = True
    """Whether the dispatch may write there."""

    @property
    def bytes(self) -> int:
        return -(-prod(self.shape) * bits_of(self.element) // 8)


@dataclass(frozen=True)
class Arguments:
    """What a dispatch is called with."""

    spans: tuple[Span, ...]
    constants: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return sum(span.bytes for span in self.spans)

    def sizes(self, spare: int = ALIGNMENT) -> list[int]:
        """Return bytes of each binding, and some behind them."""
        count = 1 + max((span.binding for span in self.spans), default=-1)
        return [
            max((s.offset + s.bytes for s in self.spans if s.binding == i), default=0) + spare
            for i in range(count)
        ]

    def fill(self, seed: int = 0) -> list[Bytes]:
        """Return buffers of random numbers, the same for the same seed."""
        buffers = [aligned_zeros(size) for size in self.sizes()]
        random = np.random.default_rng(seed)
        for span in self.spans:
            data = _random(random, prod(span.shape), span.element)
            buffers[span.binding][span.offset : span.offset + len(data)] = data
        return buffers


def _random(random: np.random.Generator, count: int, element: str) -> Bytes:
    kinds: dict[str, Any] = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
    if element in kinds:
        # Positive, so that roots and logarithms of sums are numbers.
        return random.random(count, np.float32).astype(kinds[element]).view(np.uint8)
    if element == "bf16":
        wide = random.random(count, np.float32).view(np.uint32) >> 16
        return wide.astype(np.uint16).view(np.uint8)
    size = -(-count * bits_of(element) // 8)
    if bits_of(element) <= 8:
        return random.integers(0, 256, size, np.uint8)
    width = max(1, bits_of(element) // 8)
    return random.integers(0, 100, count).astype(f"i{width}").view(np.uint8)


def read_arguments(module: ModuleOp) -> Arguments:
    """Return the spans and constants of a dispatch; refused where sizes depend on a run."""
    spans: list[tuple[Operation, int | str]] = []
    loads: dict[int, None] = {}
    for op in module.walk():
        name = name_of(op)
        if name in LOOKUPS:
            raise UnsupportedError(f"it reads where its data says ({name})")
        if name == LOAD:
            loads[_number(op, "ordinal")] = None
        if name == SUBSPAN:
            spans.append((op, _offset(op.operands[0]) if op.operands else 0))
    offsets: dict[str, int] = {}
    end = max((at + _span(op, 0).bytes for op, at in spans if isinstance(at, int)), default=0)
    for at in dict.fromkeys(at for _, at in spans if isinstance(at, str)):
        offsets[at] = end = -(-end // ALIGNMENT) * ALIGNMENT
        end += max(_span(other, 0).bytes for other, there in spans if there == at)
    sizes = set(loads) - {int(part) for at in offsets for part in at.split("+")}
    if sizes:
        raise UnsupportedError("its sizes depend on a run")
    constants = [0] * (1 + max(loads, default=-1))
    for at, offset in offsets.items():
        constants[int(at.split("+")[0])] = offset
    filled = (_span(op, offsets[at] if isinstance(at, str) else at) for op, at in spans)
    return Arguments(tuple(filled), tuple(constants))


def _span(op: Operation, offset: int) -> Span:
    type = op.results[0].type
    if not isinstance(type, MemRefType):
        raise UnsupportedError("it reads something else than memory")
    sizes: Any = type.get_shape()  # pyright: ignore[reportUnknownMemberType]
    if any(size < 0 for size in sizes):
        raise UnsupportedError("its sizes depend on a run")
    element = str(cast("Any", type).element_type)
    flags = attribute_of(op, "descriptor_flags")
    written = not (isinstance(flags, IntegerAttr) and flags.value.data & READ_ONLY)
    return Span(_number(op, "binding"), offset, tuple(map(int, sizes)), element, written)


def _number(op: Operation, name: str) -> int:
    value = attribute_of(op, name)
    assert isinstance(value, IntegerAttr), f"{name} is a number"
    return value.value.data


def _offset(value: SSAValue) -> int | str:
    """Return a constant, or the words of the call that it is made of, low ones first: `3+4`."""
    owner: Any = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)  # pyright: ignore[reportUnknownMemberType]
    words: list[int] = []
    pending, seen = [value], set[SSAValue]()
    while pending:
        at = pending.pop()
        op: Any = at.owner
        if at in seen or not isinstance(op, Operation):
            continue
        seen.add(at)
        if name_of(op) == LOAD:
            words.append(_number(op, "ordinal"))
        pending += op.operands
    if not words:
        raise UnsupportedError("where its data lies depends on a run")
    return "+".join(map(str, sorted(words)))


def aligned_zeros(size: int) -> Bytes:
    """Return zeros that begin at a cache line."""
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]
