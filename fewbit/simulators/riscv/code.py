"""A program's instructions, decoded once: simulators work on indices, not on addresses.

Behind the code stands one more entry, which no program may reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.riscv.elf import Symbol
from fewbit.riscv.encoding import IllegalInstructionError, Instruction, decode, disassemble
from fewbit.riscv.instructions import Kind, specs

NOTHING = "(nothing)"
MOST = 1 << 26


class Code:
    """The instructions from the lowest address of code to the highest.

    None stands where a word is no instruction, or belongs to no code.
    """

    def __init__(
        self, xlen: int, stretches: Sequence[tuple[int, bytes]], symbols: dict[str, Symbol]
    ) -> None:
        self.xlen = xlen
        self.symbols = symbols
        self.stretches = sorted(stretches)
        self.low = min((start for start, _ in stretches), default=0)
        high = max((start + len(data) for start, data in stretches), default=0)
        if high - self.low > MOST:
            raise UnsupportedError(
                f"the program's code is spread over {high - self.low} bytes",
                hint=f"link it so that its code is within {MOST} bytes",
            )
        if any(start % 4 for start, _ in stretches):
            raise UnsupportedError("the program's code does not begin at a multiple of 4")
        words = np.zeros((high - self.low) // 4 + 1, "<u4")
        for start, data in self.stretches:
            at, count = (start - self.low) // 4, len(data) // 4
            words[at : at + count] = np.frombuffer(data[: 4 * count], "<u4")
        self.words: list[int] = words.tolist()
        self.instructions = [_decode(word, xlen) for word in self.words]
        self.pcs = range(self.low, self.low + 4 * len(words), 4)
        self.addresses = np.arange(len(words)) * 4 + self.low

    def __len__(self) -> int:
        return len(self.words)

    def inside(self, pc: int) -> bool:
        return any(start <= pc < start + len(data) for start, data in self.stretches)

    def index(self, pc: int) -> int | None:
        """Return which instruction is at an address, if one is."""
        return None if pc % 4 or not self.inside(pc) else (pc - self.low) // 4

    def describe(self, index: int) -> str:
        """Return an instruction as text, for messages."""
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
