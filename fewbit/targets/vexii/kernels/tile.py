"""A tile of the matmul: up to 4 x 4 accumulators, over panels of activations and weights.

In each step the words of the narrower operand are loaded once, those of the wider one row by row,
each right after the last use of the word before it. Sums are added up one or more instructions
behind the dot products, so that none waits for its result. The first step of a sum is not added to
anything. What the loops around need is on the stack: all registers hold operands and sums. Short
sums, of up to UNROLLED steps, have no loop over steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.registers import SAVED, TEMPORARY
from fewbit.targets.vexii.layout import Layout

UNROLLED = 4


@dataclass(frozen=True)
class Tile:
    """Some rows times all panels of so many output channels."""

    parameters: ClassVar[str] = "ptr, ptr, ptr, index, index, index, index"
    """Panel of activations, panels of weights, sums, steps, panels, bytes between rows, excess."""

    layout: Layout
    rows: int
    columns: int
    steps: int | None = None
    """How many steps a sum has, if they are few."""
    padded: bool = False
    """Whether padding adds to sums, which is then subtracted."""

    @staticmethod
    def of(layout: Layout, rows: int, columns: int, k: int) -> Tile:
        """Return the tile for sums of this length."""
        steps = layout.steps(k)
        few = steps if steps <= UNROLLED else None
        return Tile(layout, rows, columns, few, padded=layout.excess(k) > 0)

    @property
    def symbol(self) -> str:
        layout = self.layout
        steps = "" if self.steps is None else f"_k{self.steps}"
        padded = "_padded" if self.padded else ""
        return f"dot_a{layout.act}w{layout.weight}_{self.rows}x{self.columns}{steps}{padded}"

    @property
    def unrolled(self) -> int:
        """Steps of a round of the inner loop."""
        return 2 if self.rows * self.columns * self.layout.ratio >= 16 else 4

    def emit(self, assembler: Assembler) -> None:
        _Writer(self, assembler).write()


class _Writer:
    def __init__(self, tile: Tile, assembler: Assembler) -> None:
        layout = tile.layout
        self.tile, self.a, self.ratio = tile, assembler, layout.ratio
        self.word = layout.xlen // 8
        self.wide_rows, self.narrow_rows = (
            (tile.rows, tile.columns) if layout.act_is_wide else (tile.columns, tile.rows)
        )
        free = [*TEMPORARY, *SAVED]

        def take(count: int) -> list[str]:
            taken = free[:count]
            del free[:count]
            return taken

        sums = take(self.wide_rows * self.narrow_rows)
        self.sums = [sums[i :: self.wide_rows] for i in range(self.wide_rows)]
        self.narrow = take(self.narrow_rows)
        self.sets = max(1, min(self.wide_rows, 4 // self.ratio))
        self.wide = [take(self.ratio) for _ in range(self.sets)]
        self.act_pointer, self.weight_pointer, self.left = take(3)
        self.products = take(min(4, len(free)))
        self.saved = [r for r in SAVED if r not in free]

    def write(self) -> None:
        a = self.a
        slots = ["act", "weight", "sums", "steps", "panels", "stride", "excess", *self.saved]
        self.slot = {name: i * self.word for i, name in enumerate(slots)}
        frame = -(-len(slots) * self.word // 16) * 16
        a.symbol(self.tile.symbol)
        a.addi("sp", "sp", -frame)
        for register in self.saved:
            self.keep(register, register)
        a.addi("a3", "a3", -1 - self.tile.unrolled)
        for number, name in enumerate(slots[:7]):
            self.keep(f"a{number}", name)
        self.back(self.weight_pointer, "weight")
        if self.tile.steps is None:
            self.panels()
        else:
            self.short_panels(self.tile.steps)
        for register in self.saved:
            self.back(register, register)
        a.addi("sp", "sp", frame)
        a.ret()

    def panels(self) -> None:
        """Multiply all panels of weights, with a loop over steps for each."""
        a, unrolled = self.a, self.tile.unrolled
        main, tail, one, done = (a.fresh(name) for name in ("steps", "tail", "step", "sums"))
        panel = a.label(a.fresh("panel"))
        self.back(self.act_pointer, "act")
        self.back(self.left, "steps")
        self.step(0, first=True)
        self.advance(1)
        a.blt(self.left, "zero", tail)
        a.label(main)
        for number in range(unrolled):
            self.step(number)
        self.advance(unrolled)
        a.addi(self.left, self.left, -unrolled)
        a.bge(self.left, "zero", main)
        a.label(tail)
        a.addi(self.left, self.left, unrolled)
        a.beqz(self.left, done)
        a.label(one)
        self.step(0)
        self.advance(1)
        a.addi(self.left, self.left, -1)
        a.bnez(self.left, one)
        a.label(done)
        self.store()
        count = self.act_pointer
        self.back(count, "panels")
        a.addi(count, count, -1)
        self.keep(count, "panels")
        a.bnez(count, panel)

    def short_panels(self, steps: int) -> None:
        """Multiply all panels, with the steps unrolled."""
        a, count = self.a, self.left
        self.back(self.act_pointer, "act")
        self.back(count, "panels")
        panel = a.label(a.fresh("panel"))
        for number in range(steps):
            self.step(number, first=number == 0)
        self.advance(steps, act=False)
        self.store()
        a.addi(count, count, -1)
        a.bnez(count, panel)

    def step(self, number: int, *, first: bool = False) -> None:
        """Multiply one word of each narrow row by the words of each wide row."""
        layout, pending = self.tile.layout, list[tuple[str, str]]()
        for q, register in enumerate(self.narrow):
            self.load(register, number * self.narrow_rows + q, wide=False)
        for p in range(self.sets):
            for s in range(self.ratio):
                self.load_wide(number, p, s)
        dot = f"dot{layout.wide}x{layout.narrow}"
        count = 0
        for p, row in enumerate(self.sums):
            words = self.wide[p % self.sets]
            for q, total in enumerate(row):
                for s, word in enumerate(words):
                    is_start = first and s == 0
                    if not is_start and len(pending) == len(self.products):
                        self.add(pending.pop(0))
                    product = total if is_start else self.products[count % len(self.products)]
                    self.a.emit(dot, product, word, self.narrow[q])
                    if not is_start:
                        pending.append((total, product))
                        count += 1
                    if q == len(row) - 1 and p + self.sets < self.wide_rows:
                        self.load_wide(number, p + self.sets, s)
        for each in pending:
            self.add(each)

    def add(self, pending: tuple[str, str]) -> None:
        total, product = pending
        self.a.add(total, total, product)

    def load_wide(self, step: int, row: int, part: int) -> None:
        place = (step * self.wide_rows + row) * self.ratio + part
        self.load(self.wide[row % self.sets][part], place, wide=True)

    def load(self, register: str, place: int, *, wide: bool) -> None:
        is_act = wide == self.tile.layout.act_is_wide
        pointer = self.act_pointer if is_act else self.weight_pointer
        self.a.emit("lw" if self.word == 4 else "ld", register, place * self.word, pointer)

    def advance(self, steps: int, *, act: bool = True) -> None:
        """Move the pointers on; that to activations only if it is wanted."""
        wide, narrow = self.wide_rows * self.ratio, self.narrow_rows
        acts, weights = (wide, narrow) if self.tile.layout.act_is_wide else (narrow, wide)
        if act:
            self.a.addi(self.act_pointer, self.act_pointer, steps * acts * self.word)
        self.a.addi(self.weight_pointer, self.weight_pointer, steps * weights * self.word)

    def store(self) -> None:
        """Store the accumulators, row by row; the next panel's are behind them."""
        to, stride, excess = self.narrow[0], self.products[0], self.products[1]
        self.back(to, "sums")
        self.a.addi(stride, to, 4 * self.tile.columns)
        self.keep(stride, "sums")
        if self.tile.rows > 1:
            self.back(stride, "stride")
        if self.tile.padded:
            self.back(excess, "excess")
        for number, row in enumerate(self.by_row()):
            if number:
                self.a.add(to, to, stride)
            for column, total in enumerate(row):
                if self.tile.padded:
                    self.a.sub(total, total, excess)
                self.a.sw(total, 4 * column, to)

    def by_row(self) -> Sequence[Sequence[str]]:
        """Return accumulators by rows of activations."""
        if self.tile.layout.act_is_wide:
            return self.sums
        return [list(column) for column in zip(*self.sums, strict=True)]

    def keep(self, register: str, name: str) -> None:
        self.a.emit("sw" if self.word == 4 else "sd", register, self.slot[name], "sp")

    def back(self, register: str, name: str) -> None:
        self.a.emit("lw" if self.word == 4 else "ld", register, self.slot[name], "sp")
