"""Tiles: some rows times a block of channels, over the whole depth, and then the epilogue.

Accumulators stay in registers. What differs between families is one step of the depth:

- `plain` multiplies byte by byte; narrower weights are taken out of their chunk first.
- `dsp` multiplies pairs (`smlad`). Rows are pairs already, interleaved, so that one pointer walks
  through all of them; weights become pairs on the way: bytes by `sxtb16`, narrower ones by a mask,
  because they count from 0, and what that adds, a multiple of a row's sum, is taken off at the end.
  LLVM would load all rows first, and then have no registers for them, but for barriers between.
- `mve` multiplies sixteen bytes (`vmladav`); fields are shifted out of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.llvm.types import I8, I16, I32, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.epilogue import Epilogue
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.mcu.layout import VECTOR, Layout

BYTES = Vector(VECTOR, I8)
ONES = 0x00010001
GROUP = 4
"""Elements of which pairs are made at once."""


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` rows of `k` elements, and all blocks of `n` channels."""

    layout: Layout
    rows: int
    k: int
    n: int
    epilogue: Epilogue
    has_row_scales: bool = False
    """Whether each row of activations has a scale; else there is one."""

    @property
    def name(self) -> str:
        layout = self.layout
        shape = f"{self.rows}x{layout.columns}x{self.k}x{self.n}"
        marks = "r" if self.has_row_scales else "o"
        return name_of("tile", f"w{layout.bits}", shape, marks, self.epilogue.name)

    @property
    def row_bytes(self) -> int:
        """The bytes from one row of activations to the next, where they are not interleaved."""
        return self.layout.depth(self.k)

    @property
    def pair_bytes(self) -> int:
        """The bytes of all rows as pairs, behind which their sums lie."""
        return 2 * self.layout.depth(self.k) * self.rows

    @property
    def needs_sums(self) -> bool:
        """Whether weights do not stand for themselves."""
        return self.layout.family == "dsp" and self.layout.bits < 8


def tile(code: Code, wanted: Tile) -> Kernel:
    """Return the tile; its outputs are rows of n channels."""
    found = code.find(wanted.name)
    return found or code.add(_Writer(code, wanted).write())


class _Writer:
    def __init__(self, code: Code, wanted: Tile) -> None:
        self.tile, self.layout = wanted, wanted.layout
        self.f = Kernel(
            code.core,
            wanted.name,
            "ptr rows, ptr weight, ptr table, ptr x_scale, ptr add, ptr y, ptr q",
        )

    def write(self) -> Kernel:
        f, tile, layout = self.f, self.tile, self.layout
        rows, weight, table, *_ = f.parameters
        columns, n = layout.columns, tile.n
        zero = f.integer(0)
        count = tile.rows * columns
        with f.loop(0, n, columns, carried=[weight], hot=True) as over:
            first = over.index if n % columns == 0 else f.smaller(over.index, n - columns)
            (block,) = over.carried
            full, rest = divmod(layout.depth(tile.k), layout.step)
            accs, at, end = [zero] * count, block, rows
            if full:
                with f.loop(0, full, carried=[rows, block, *accs], hot=True) as loop:
                    x, w, *accs = loop.carried
                    accs = self._step(x, w, accs, layout.step)
                    after = f.at(x, self._row_step, "i8"), f.at(w, self._block_step, "i8")
                    loop.carry(*after, *accs)
                end, at, *accs = loop.results
            if rest:
                accs = self._step(end, at, accs, rest)
            over.carry(f.at(block, layout.block_bytes(tile.k), "i8"))
            self._finish(accs, first, table)
        return f

    @property
    def _row_step(self) -> int:
        step = self.layout.step
        return 2 * step * self.tile.rows if self.layout.family == "dsp" else step

    @property
    def _block_step(self) -> int:
        return self.layout.chunk_bytes * self.layout.columns

    def _step(self, x: Value, w: Value, accs: list[Value], elements: int) -> list[Value]:
        steps = {"plain": self._plain, "dsp": self._pairs, "mve": self._vectors}
        return steps[self.layout.family](x, w, accs, elements)

    # One by one

    def _plain(self, x: Value, w: Value, accs: list[Value], elements: int) -> list[Value]:
        f, layout, tile = self.f, self.layout, self.tile
        chunks = [self._chunk(w, column) for column in range(layout.columns)]
        for element in range(elements):
            weights = [
                self._field(w, chunk, column, element) for column, chunk in enumerate(chunks)
            ]
            for row in range(tile.rows):
                value = f.signed(f.load("i8", x, row * tile.row_bytes + element))
                for column, weight in enumerate(weights):
                    index = row * layout.columns + column
                    accs[index] = accs[index] + value * weight
                f.keep_order()
        return accs

    def _chunk(self, w: Value, column: int) -> Value | None:
        """Load a chunk of fields; bytes are loaded one by one."""
        f, layout = self.f, self.layout
        if layout.bits == 8:
            return None
        loaded = f.load(I16 if layout.chunk_bytes == 2 else I8, w, column)
        return f.convert("zext", loaded, I32)

    def _field(self, w: Value, chunk: Value | None, column: int, element: int) -> Value:
        f, bits = self.f, self.layout.bits
        if chunk is None:
            return f.signed(f.load("i8", w, column * self.layout.chunk_bytes + element))
        moved = chunk.shift_left(32 - bits * (element + 1)).shift_right_signed(32 - bits)
        return moved | 1 if bits == 1 else moved

    # In pairs

    def _pairs(self, x: Value, w: Value, accs: list[Value], elements: int) -> list[Value]:
        f, layout, rows = self.f, self.layout, self.tile.rows
        words = [f.word(w, column) for column in range(layout.columns)]
        for group in range(elements // GROUP):
            weights = [self._weight_pairs(word, group) for word in words]
            for row in range(rows):
                place = (group * rows + row) * 2
                both = [f.load(I32, x, place + i, align=8 if i == 0 else 4) for i in range(2)]
                for column, pairs in enumerate(weights):
                    index = row * layout.columns + column
                    for i, pair in enumerate(both):
                        accs[index] = f.intrinsic("arm.smlad", I32, pair, pairs[i], accs[index])
                f.settle(accs[row * layout.columns : (row + 1) * layout.columns])
        return accs

    def _weight_pairs(self, word: Value, group: int) -> tuple[Value, Value]:
        """Return the pairs of a word that go with four elements."""
        f, bits = self.f, self.layout.bits
        if bits == 8:
            return pairs_of(f, word)
        mask = f.number32((ONES << bits) - ONES)
        first = word.shift_right(2 * group * bits) if group else word
        return first & mask, word.shift_right((2 * group + 1) * bits) & mask

    # Sixteen at a time

    def _vectors(self, x: Value, w: Value, accs: list[Value], elements: int) -> list[Value]:
        f, layout, tile = self.f, self.layout, self.tile
        loaded = [f.load(BYTES, w, column, align=4) for column in range(layout.columns)]
        flags = [f.integer(0)] * 3
        for part in range(elements // VECTOR):
            weights = [self._vector_fields(each, part) for each in loaded]
            for row in range(tile.rows):
                at = f.at(x, row * tile.row_bytes + part * VECTOR, "i8")
                values = f.load(BYTES, at, align=1)
                for column, weight in enumerate(weights):
                    index = row * layout.columns + column
                    accs[index] = f.intrinsic(
                        "arm.mve.vmldava.v16i8", I32, *flags, accs[index], values, weight
                    )
        return accs

    def _vector_fields(self, vector: Value, part: int) -> Value:
        bits = self.layout.bits
        if bits == 8:
            return vector
        left = 8 - bits * (part + 1)
        moved = vector.shift_left(left) if left else vector
        fields = moved.shift_right_signed(8 - bits)
        return fields | 1 if bits == 1 else fields

    # Behind the depth

    def _finish(self, accs: list[Value], first: Value, table: Value) -> None:
        f, tile, epilogue = self.f, self.tile, self.tile.epilogue
        columns = self.layout.columns
        if tile.needs_sums:
            accs = self._without_offset(accs)
        one_scale = None
        if epilogue.kind == "floats" and not tile.has_row_scales:
            one_scale = f.load("float", f.parameter("x_scale"), 0, align=4)
        for column in range(columns):
            channel = first + column
            given = epilogue.channel(f, table, channel)
            if epilogue.kind == "channels":
                some = [accs[row * columns + column] for row in range(tile.rows)]
                add_to_channel(f, epilogue, some, given, channel)
                continue
            for row in range(tile.rows):
                scale = one_scale
                if epilogue.kind == "floats" and scale is None:
                    scale = f.load("float", f.parameter("x_scale"), row, align=4)
                place = channel + row * tile.n
                store_output(f, epilogue, accs[row * columns + column], given, scale, place)

    def _without_offset(self, accs: list[Value]) -> list[Value]:
        """Return sums of products with weights as they are, not as they are stored."""
        f, tile, layout = self.f, self.tile, self.layout
        sums = f.at(f.parameter("rows"), tile.pair_bytes, "i8")
        changed: list[Value] = []
        for row in range(tile.rows):
            total = f.word(sums, row)
            some = accs[row * layout.columns : (row + 1) * layout.columns]
            if layout.bits == 1:
                changed += [total - acc.shift_left(1) for acc in some]
            else:
                changed += [acc - total * layout.offset for acc in some]
        return changed


def add_to_channel(
    f: Kernel, epilogue: Epilogue, accs: list[Value], given: dict[str, Value], channel: Value
) -> None:
    """Add what accumulators of a channel become to its sum."""
    y = f.parameter("y")
    total = f.word(y, channel)
    for acc in accs:
        total = total + epilogue.integers_of(f, acc, given)
    f.store(total, y, channel, align=4)


def store_output(
    f: Kernel,
    epilogue: Epilogue,
    acc: Value,
    given: dict[str, Value],
    x_scale: Value | None,
    place: Value,
) -> None:
    """Store what an accumulator becomes: to `y` floats and sums, to `q` integers."""
    if epilogue.kind != "floats":
        value = epilogue.integers_of(f, acc, given)
        if epilogue.kind == "sums":
            f.store(value, f.parameter("y"), place, align=4)
        else:
            f.store(f.convert("trunc", value, I8), f.parameter("q"), place)
        return
    assert x_scale is not None
    add = f.load("float", f.parameter("add"), place, align=4) if epilogue.has_add else None
    value, steps = epilogue.floats_of(f, acc, given, x_scale, add)
    if value is not None:
        f.store(value, f.parameter("y"), place, align=4)
    if steps is not None:
        f.store(f.convert("trunc", steps, I8), f.parameter("q"), place)


def pairs_of(f: Kernel, word: Value) -> tuple[Value, Value]:
    """Return the bytes of a word as two pairs: the first and third, the second and fourth."""
    turned = f.intrinsic("fshr.i32", I32, word, word, f.integer(8))
    first = f.intrinsic("arm.sxtb16", I32, word)
    return first, f.intrinsic("arm.sxtb16", I32, turned)
