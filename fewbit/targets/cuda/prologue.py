"""The loops that a layer's blocks begin with, as a function of CUDA C++.

What loops make lies in shared memory, and so do copies of what many of them read. A number by
itself is computed by every thread, so that nobody waits for it; sums that are the same in any order
are shared by all threads, others by a warp, as in a kernel of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fewbit.targets.cuda.arena_values import ArenaValues
from fewbit.targets.cuda.fused import Fused
from fewbit.targets.cuda.join_loops import MOST
from fewbit.targets.cuda.memory import BYTES, Memory
from fewbit.targets.cuda.nest import Nest

_UNIT = 16
"""Bytes that are copied at once; everything in shared memory begins at a multiple of it."""
_WORD = 4
_MOST_COPIED = 16 * 1024
_CONSTANT = "weights"


@dataclass(frozen=True)
class Prologue:
    """A function of shared memory, whether the block is the first, and pointers."""

    text: str
    """Its definition, and those of what it calls, with `@` for its name."""
    types: tuple[str, ...]
    pointers: tuple[Memory, ...]
    shared: int
    """Bytes of shared memory."""
    places: dict[str, int]
    """Where operands of the layer lie in shared memory."""


def write_prologue(
    fused: Fused, values: ArenaValues, kept: frozenset[int], threads: int
) -> Prologue:
    """Return the prologue of a layer of so many threads a block.

    `kept` are the values that steps behind it read.
    """
    return _Writer(fused, values, kept, threads).write()


@dataclass
class _Writer:
    fused: Fused
    values: ArenaValues
    kept: frozenset[int]
    threads: int
    size: int = 0
    bases: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Where values in shared memory begin there, and in the arena."""
    pointers: list[tuple[str, Memory]] = field(default_factory=list[tuple[str, Memory]])

    def write(self) -> Prologue:
        extents = self.values.extents()
        made = dict.fromkeys(self.values.of(m) for nest in self.fused.nests for m in nest.writes)
        for value in filter(None, made):
            begin, end = extents[value]
            self.bases[value] = self._take(end - begin), begin
        nests = [nest.move(self._in_shared) for nest in self.fused.nests]
        phases = _phases(nests)
        ranges = self._ranges(phases)
        copies = {key: self._take(m.count) for key, m in ranges.items()}

        def find_copy(memory: Memory) -> Memory:
            key = self._source(memory)
            if key not in copies:
                return memory
            at = copies[key] + memory.byte - ranges[key].byte
            return replace(memory, buffer="shared", byte=at, owner=0)

        early = [key for key in copies if key[0] == _CONSTANT]
        lines = [self._copy_in(ranges[key], copies[key]) for key in early]
        lines.append("  WAIT;")
        lines += [self._copy_in(ranges[key], copies[key]) for key in copies if key not in early]
        if any(self._source(m) in copies for nest in phases[0] for m in nest.reads):
            lines.append("  BARRIER;")
        functions: list[str] = []
        whole: list[str] = []
        for number, phase in enumerate(phases):
            lines += ["  BARRIER;"] if number else []
            lines += self._phase([nest.move(find_copy) for nest in phase], functions)
            lines += whole
            whole = [self._copy_out(v) for v in self._find_finished(number, phases)]
        lines += ["  BARRIER;", *whole]
        parameters = ["u8* shared", "u64 first"]
        parameters += [f"{type} p{i}" for i, (type, _) in enumerate(self.pointers)]
        head = f"DEVICE void @({', '.join(parameters)}) {{\n"
        body = "\n".join(lines)
        return Prologue(
            "\n".join([*functions, f"{head}{body}\n}}\n"]),
            tuple(type for type, _ in self.pointers),
            tuple(memory for _, memory in self.pointers),
            self.size,
            {
                name: self._in_shared(memory).byte
                for name, memory in self.fused.call.operands.items()
                if self.values.of(memory) in self.bases
            },
        )

    def _find_finished(self, number: int, phases: Sequence[Sequence[Nest]]) -> list[int]:
        """Return values that are read later, and that this phase is the last to write."""
        at = {
            value: n
            for n, phase in enumerate(phases)
            for nest in phase
            for memory in nest.writes
            for value, (start, _) in self.bases.items()
            if memory.buffer == "shared" and start <= memory.byte < start + self._size(value)
        }
        return [value for value, n in at.items() if n == number and value in self.kept]

    def _size(self, value: int) -> int:
        begin, end = self.values.extents()[value]
        return -(-(end - begin) // _UNIT) * _UNIT  # of lines that it has for itself

    def _source(self, memory: Memory) -> tuple[str, int]:
        """Return what is copied as one: a value, or a constant."""
        if memory.buffer == _CONSTANT:
            return _CONSTANT, memory.byte
        return memory.buffer, self.values.of(memory)

    def _ranges(self, phases: Sequence[Sequence[Nest]]) -> dict[tuple[str, int], Memory]:
        """Return the bytes that are copied to shared memory: constants, and what is read often.

        What one thread reads once, and all threads at the same time, comes as early by itself.
        """
        turns = sum(-(-nest.threads // 32) * 32 for nest in phases[0]) > self.threads
        found: dict[tuple[str, int], list[Memory]] = {}
        often: set[tuple[str, int]] = set()
        for number, phase in enumerate(phases):
            for nest in phase:
                for memory in nest.reads:
                    if not memory.buffer.startswith(("arena", "in", _CONSTANT)):
                        continue
                    key = self._source(memory)
                    if key in found or number or turns or nest.by_lanes or key[0] == _CONSTANT:
                        often.add(key)
                    found.setdefault(key, []).append(memory)
        ranges: dict[tuple[str, int], Memory] = {}
        for key in often:
            if any(memory.shifts for memory in found[key]):
                continue
            spans = [memory.span for memory in found[key]]
            begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
            if key[0] == "arena":  # Its values have whole lines.
                begin, end = begin // _UNIT * _UNIT, -(-end // _UNIT) * _UNIT
            if not begin % _UNIT and not end % _WORD and end - begin <= _MOST_COPIED:
                first = found[key][0]
                ranges[key] = Memory(key[0], "i8", (end - begin,), (1,), begin, owner=first.owner)
        return {key: ranges[key] for key in found if key in ranges}

    def _take(self, size: int) -> int:
        at = self.size
        self.size += -(-size // _UNIT) * _UNIT
        return at

    def _in_shared(self, memory: Memory) -> Memory:
        value = self.values.of(memory)
        if value not in self.bases:
            return memory
        at, begin = self.bases[value]
        return replace(memory, buffer="shared", byte=at + memory.byte - begin, owner=0)

    def _pointer(self, type: str, memory: Memory) -> str:
        if memory.buffer == "shared":
            return f"({type})(shared + {memory.byte})"
        for number, (known, other) in enumerate(self.pointers):
            if known == type and _key(other) == _key(memory):
                return f"p{number}"
        self.pointers.append((type, memory))
        return f"p{len(self.pointers) - 1}"

    def _copy_in(self, memory: Memory, at: int) -> str:
        pointer = self._pointer("const u8*", memory)
        return f"  copy_block(shared + {at}, {pointer}, {memory.count});"

    def _copy_out(self, value: int) -> str:
        (at, begin), size = self.bases[value], self._size(value)
        memory = Memory("arena", "i8", (size,), (1,), begin, owner=value)
        pointer = self._pointer("u8*", memory)
        return f"  if (first) copy_block({pointer}, shared + {at}, {size});"

    def _phase(self, nests: Sequence[Nest], functions: list[str]) -> list[str]:
        """Return calls of loops that have nothing to do with each other."""
        first, lines, waits = 0, list[str](), False
        read = {m.buffer for m in self.fused.call.reads}
        for nest in sorted(nests, key=lambda nest: _is_last(nest, nests)):
            name = f"@_{len(functions)}"
            whole = bool(nest.whole_body) and _is_local(nest)
            functions.append(nest.as_function(name, whole))
            pointers = [self._pointer(t, m) for t, m in zip(nest.types, nest.pointers, strict=True)]
            call = f"{name}(%, {', '.join(pointers)});"
            if whole:
                again = "BARRIER; " if waits or nest.threads > 32 else ""
                turns = f"for (u32 i = 0; i < {nest.threads // 32}u; i++) {{ {again}"
                lines.append(f"  {turns}{call.replace('%', 'i * LANES')} }}")
                waits = True
                continue
            if is_for_everybody(nest):
                lines.append(f"  {call.replace('%', '0')}")
                continue
            start = f"FROM({first}u)" if first else "TURN"
            alone = any(m.buffer not in ("shared", *read) for m in nest.writes)
            lines.append(
                f"  {'if (first) ' if alone else ''}"
                f"for (u32 i = {start}; i < {nest.threads}u; i += WIDTH) {call.replace('%', 'i')}"
            )
            first += -(-nest.threads // 32) * 32
        return lines


def _is_last(nest: Nest, nests: Sequence[Nest]) -> bool:
    """Whether it can be computed when others are: a number that none of them reads."""
    if nest.threads != 1 or not is_for_everybody(nest):
        return False
    return not any(w.meets(m) for w in nest.writes for each in nests for m in each.reads)


def _is_local(nest: Nest) -> bool:
    return all(memory.buffer == "shared" for memory in nest.writes)


def is_for_everybody(nest: Nest) -> bool:
    """Whether every thread computes all of it, and again gives the same."""
    if not _is_local(nest):
        return False
    if nest.whole_body:
        return True
    again = any(w.meets(m) for w in nest.writes for m in nest.reads)
    return nest.threads == 1 and not again


def _phases(nests: Sequence[Nest]) -> list[list[Nest]]:
    """Return loops as early as may be; none waits for what another thread writes in its phase."""
    phases: list[list[Nest]] = []
    for nest in nests:
        at = max(0, *(n + _steps(nest, other) for n, p in enumerate(phases) for other in p), 0)
        if at == len(phases):
            phases.append([])
        phases[at].append(nest)
    return phases


def _steps(nest: Nest, other: Nest) -> int:
    """Return how many phases loops come at least behind others; many less than 0 if any number."""
    if any(_meet(w, m) for w in nest.writes for m in (*other.reads, *other.writes)):
        return 1
    if any(_meet(w, m) for w in other.writes for m in nest.reads):
        return 0 if is_for_everybody(other) else 1
    return -MOST


def _meet(one: Memory, other: Memory) -> bool:
    """Whether two views share elements; strided ones may lie between each other."""
    if not one.meets(other):
        return False
    if one.element != other.element or one.shifts or other.shifts:
        return True
    return bool(np.intersect1d(_bytes_of(one), _bytes_of(other)).size)


def _bytes_of(memory: Memory) -> npt.NDArray[np.int64]:
    """Return where its elements begin."""
    at = np.array([memory.byte], np.int64)
    for size, stride in zip(memory.sizes, memory.strides, strict=True):
        steps = np.arange(size, dtype=np.int64) * (stride * BYTES[memory.element])
        at = (at[:, None] + steps).ravel()
    return at


def _key(memory: Memory) -> tuple[str, int, str]:
    return memory.buffer, memory.byte, memory.element
