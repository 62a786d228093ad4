"""A program's instructions, decoded once: simulators work on indices, not on addresses.

Behind each stretch of code stands one more entry that no program may reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from fewbit.riscv.elf import Symbol
from fewbit.riscv.encoding import IllegalInstructionError, Instruction, decode, disassemble
from fewbit.riscv.instructions import Kind, specs

NOTHING = "(nothing)"


class Code:
    """Instructions with their addresses, ascending; None where a word is no instruction."""

    def __init__(
        self, xlen: int, stretches: Sequence[tuple[int, bytes]], symbols: dict[str, Symbol]
    ) -> None:
        self.xlen = xlen
        self.symbols = symbols
        self.stretches = sorted(stretches)
        self.words: list[int] = []
        self.instructions: list[Instruction | None] = []
        pcs: list[int] = []
        for address, data in self.stretches:
            words = np.frombuffer(data[: len(data) // 4 * 4], "<u4").tolist()
            self.words += [*words, 0]
            self.instructions += [*(_decode(word, xlen) for word in words), None]
            pcs += range(address, address + 4 * len(words) + 1, 4)
        self.pcs = pcs
        self.addresses = np.array(pcs, np.int64)
        self.index = {pc: i for i, pc in enumerate(pcs) if self.inside(pc)}

    def __len__(self) -> int:
        return len(self.pcs)

    def inside(self, pc: int) -> bool:
        return any(start <= pc < start + len(data) for start, data in self.stretches)

    def describe(self, index: int) -> str:
        """An instruction as text, for messages."""
        if self.instructions[index] is None:
            return f"0x{self.words[index]:08x}"
        return disassemble(self.words[index], self.xlen, self.pcs[index])

    def function_at(self, pc: int) -> str | None:
        for name, start, stop in self.functions():
            if start <= pc < stop:
                return name
        return None

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """Name, start and end of each function; one without a size reaches to the next."""
        inside = [
            (s.address, name, s) for name, s in self.symbols.items() if self.inside(s.address)
        ]
        functions = sorted(item for item in inside if item[2].function) or sorted(
            item for item in inside if not item[1].startswith(".")
        )
        starts = sorted({address for address, _, _ in functions})
        seen: set[int] = set()
        for address, name, symbol in functions:
            if address in seen:
                continue
            seen.add(address)
            follow = next((s for s in starts if s > address), self.pcs[-1])
            yield name, address, address + symbol.size if symbol.size else follow

    @cached_property
    def mnemonics(self) -> list[str]:
        return [NOTHING, *specs(self.xlen)]

    @cached_property
    def kinds(self) -> list[Kind]:
        return [Kind.SYSTEM, *(spec.kind for spec in specs(self.xlen).values())]

    @cached_property
    def mnemonic_ids(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        ids = {name: i for i, name in enumerate(self.mnemonics)}
        return np.array([ids[i.mnemonic if i else NOTHING] for i in self.instructions], np.int64)

    @cached_property
    def branches(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        is_branch = np.array([kind is Kind.BRANCH for kind in self.kinds])
        return is_branch[self.mnemonic_ids]


def _decode(word: int, xlen: int) -> Instruction | None:
    try:
        return decode(word, xlen)
    except IllegalInstructionError:
        return None
