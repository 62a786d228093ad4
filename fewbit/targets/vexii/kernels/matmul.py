"""Whole matmuls: rows of a matrix or windows of an image, packed to panels, and tiles over them.

Everything but the number of rows is known when these functions are made, so LLVM sees constants. A
window is gathered to a row of bytes first. Where the channels of a pixel fill whole chunks, the
image is packed once for all windows, and those are gathered from packed pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.kernels.emit import Function, Value
from fewbit.llvm.function import Prototype
from fewbit.llvm.types import Int
from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.pack import (
    CHUNK_BYTES,
    load_chunk,
    pack_rows,
    store_chunk,
)
from fewbit.targets.vexii.kernels.tile import Tile
from fewbit.targets.vexii.layout import Layout


class Assembled(Protocol):
    """A function in assembly."""

    parameters: ClassVar[str]
    """Their types, in LLVM's words; `index` is the processor's type of sizes."""

    @property
    def symbol(self) -> str: ...

    def emit(self, assembler: Assembler) -> None: ...


@dataclass
class Code:
    """What the matmuls of a program need: functions in LLVM IR, and tiles in assembly."""

    processor: Processor
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    assembled: dict[str, Assembled] = field(default_factory=dict[str, "Assembled"])

    def add(self, made: Function) -> Function:
        """Return the function, or one of the same name that was there before."""
        if made.name not in self.functions:
            self.functions[made.name] = made
            for needed in made.needs:
                self.add(needed)
        return self.functions[made.name]

    def prototype(self, assembled: Assembled) -> Prototype:
        """Return what a call of a function in assembly needs, which becomes one of the program."""
        self.assembled.setdefault(assembled.symbol, assembled)
        types = assembled.parameters.split(", ")
        return Prototype.of(assembled.symbol, "void", *types, index=Int(self.processor.xlen))

    def text(self) -> str:
        """Return LLVM IR of all functions."""
        assembled = [self.prototype(each).declaration() for each in self.assembled.values()]
        # Loops that copy stay loops: a call of memcpy takes longer than a row does.
        functions = [f.text('"no-builtins"') for f in self.functions.values()]
        intrinsics = {line for f in self.functions.values() for line in f.intrinsics}
        return "\n".join([*assembled, *functions, *sorted(intrinsics)])


@dataclass(frozen=True)
class Matmul:
    """Rows of `k` bytes, each an activation, times `n` channels; `stride` channels lie in a row."""

    code: Code
    layout: Layout
    k: int
    n: int
    stride: int

    @property
    def panel_bytes(self) -> int:
        """The bytes of a panel of activations."""
        return self.layout.rows * self.layout.row_bytes(self.k)

    def rows(self, count: int | None) -> list[int]:
        """Return rows that a panel may have, of `count` rows in all, if that is known."""
        full = self.layout.rows
        if count is None:
            return list(range(1, full + 1))
        return sorted({full} & {min(count, full)} | ({count % full} - {0}))

    def multiply(
        self, f: Function, panel: Value, weight: Value, y: Value, rows: Value, choices: list[int]
    ) -> None:
        """Call tiles over one panel of activations and all panels of weights."""
        if len(choices) == 1:
            self._tiles(f, panel, weight, y, choices[0])
            return
        for count in choices:
            with f.when(rows.equals(count)):
                self._tiles(f, panel, weight, y, count)

    def _tiles(self, f: Function, panel: Value, weight: Value, y: Value, rows: int) -> None:
        full, tail = divmod(self.n, self.layout.columns)
        if full:
            self._tile(f, panel, weight, y, rows, self.layout.columns, full)
        if tail:
            each = self.layout.panel_bytes(self.k, self.layout.columns)
            last = f.at(weight, full * each, "i8")
            self._tile(f, panel, last, f.at(y, full * self.layout.columns, "i32"), rows, tail, 1)

    def _tile(
        self,
        f: Function,
        panel: Value,
        weight: Value,
        y: Value,
        rows: int,
        columns: int,
        count: int,
    ) -> None:
        layout, k = self.layout, self.k
        excess = layout.excess(k)
        tile = Tile.of(layout, rows, columns, k)
        sizes = (layout.steps(k), count, 4 * self.stride, excess)
        f.call(self.code.prototype(tile), panel, weight, y, *sizes)

    def pack_row(self, f: Function, row: Value, panel: Value, number: Value, rows: Value) -> None:
        """Pack one row of bytes to its place in a panel of `rows` rows."""
        layout, chunk = self.layout, self.layout.act_chunks * CHUNK_BYTES
        pack = self.code.add(pack_rows(f.isa, layout.act, layout.act_chunks))
        f.call(pack, row, f.at(panel, number * chunk, "i8"), layout.steps(self.k), rows * chunk)


def matmul(code: Code, layout: Layout, k: int, n: int, m: int | None) -> tuple[Function, int]:
    """Return the matmul of m rows, and the bytes of room that it needs.

    Its parameters are the rows, panels of weights, sums, room, and how many rows there are.
    """
    whole = Matmul(code, layout, k, n, n)
    is_direct = layout.depth(k) == k and k % CHUNK_BYTES == 0
    name = f"matmul_a{layout.act}w{layout.weight}_{'m' if m is None else m}x{n}x{k}"
    f = Function(code.processor.isa, name, "ptr x, ptr weight, ptr y, ptr panel, index m")
    x, weight, y, panel, rows = f.parameters
    row = f.at(panel, whole.panel_bytes, "i8")
    if not is_direct:
        fill(f, row, layout.depth(k))
    with f.loop(0, rows, layout.rows) as over:
        count = f.smaller(rows - over.index, layout.rows)
        with f.loop(0, count) as each:
            given = f.at(x, (over.index + each.index) * k, "i8")
            if not is_direct:
                copy(f, given, row, k, aligned=k % CHUNK_BYTES == 0)
                given = row
            whole.pack_row(f, given, panel, each.index, count)
        sums = f.at(y, over.index * n, "i32")
        whole.multiply(f, panel, weight, sums, count, whole.rows(m))
    return code.add(f), whole.panel_bytes + (0 if is_direct else layout.depth(k))


def fill(f: Function, to: Value, count: int) -> None:
    """Fill memory with zeros."""
    with f.loop(0, -(-count // CHUNK_BYTES)) as loop:
        f.store(f.constant("i32", 0), to, loop.index, align=CHUNK_BYTES)


def copy(f: Function, given: Value, to: Value, count: int, *, aligned: bool) -> None:
    """Copy bytes; words of four where both places are aligned."""
    if not aligned:
        with f.loop(0, count) as loop:
            f.store(f.load("i8", given, loop.index), to, loop.index)
        return
    with f.loop(0, count // CHUNK_BYTES) as loop:
        place = [f.at(p, loop.index, "i32") for p in (given, to)]
        store_chunk(f, load_chunk(f, place[0], 0), place[1], 0)
