"""MiCo's ten instructions against numpy, on both simulators, offset included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.riscv.assembler import Assembler
from fewbit.riscv.instructions import DOT_WIDTHS
from fewbit.simulators.riscv import Machine
from fewbit.simulators.riscv.dots import dot

IN, OUT = 0x4000, 0x8000


def unpack(words: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    """Elements of packed bytes, lowest bits first; one bit is +1 or -1."""
    bits = np.unpackbits(words, bitorder="little").reshape(-1, width).astype(np.int64)
    if width == 1:
        return 1 - 2 * bits[:, 0]
    weights = 2 ** np.arange(width)
    weights[-1] *= -1
    return bits @ weights


def machine_with_dots(a: int, b: int, xlen: int, native: bool) -> Machine:
    """Goes through a row: a0 first operands, a1 second, a2 results, a3 the end of a0.

    Each word of the second operand meets a / b words of the first.
    """
    p, size = Assembler(xlen), xlen // 8
    load, store = (p.lw, p.sw) if xlen == 32 else (p.ld, p.sd)
    p.symbol("row")
    p.label("loop")
    load("t1", 0, "a1")
    for _ in range(a // b):
        load("t0", 0, "a0")
        p.emit(f"dot{a}x{b}", "t2", "t0", "t1")
        store("t2", 0, "a2")
        p.addi("a0", "a0", size)
        p.addi("a2", "a2", size)
    p.addi("a1", "a1", size)
    p.bne("a0", "a3", "loop")
    p.ret()
    machine = Machine(xlen, 1 << 16, native=native)
    machine.load_words(0x1000, p.words(), {"row": 0x1000})
    return machine


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("xlen", [32, 64])
@pytest.mark.parametrize(("a", "b"), DOT_WIDTHS)
def test_a_row_is_what_numpy_says(a: int, b: int, xlen: int, native: bool) -> None:
    """Three words of rs2 each time: the offset goes around three times."""
    random = np.random.default_rng(a * 100 + b * 10 + xlen)
    size, steps = xlen // 8, 3 * (a // b)
    first = random.integers(0, 256, steps * size, np.uint8)
    second = random.integers(0, 256, 3 * size, np.uint8)
    machine = machine_with_dots(a, b, xlen, native)
    for _ in range(2):
        machine.write(IN, first)
        machine.write(IN + 0x1000, second)
        run = machine.call("row", IN, IN + 0x1000, OUT, IN + steps * size)
        result = np.frombuffer(machine.read(OUT, steps * size), f"<i{size}")
        products = unpack(first, a) * unpack(second, b)
        assert result.tolist() == products.reshape(steps, -1).sum(1).tolist()
        assert run.histogram["dot"] == run.histogram[f"dot{a}x{b}"] == steps
        assert machine.state.offset == 0


@pytest.mark.parametrize("xlen", [32, 64])
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_order_of_widths(xlen: int, data: st.DataObject) -> None:
    """One offset for all widths: elements beyond the end of the word are zeros."""
    pairs = data.draw(st.lists(st.sampled_from(DOT_WIDTHS), min_size=1, max_size=20))
    word = st.integers(0, (1 << xlen) - 1)
    first, second = data.draw(word), data.draw(word)
    p = Assembler(xlen)
    for a, b in pairs:
        p.emit(f"dot{a}x{b}", "t0", "a0", "a1")
        p.slli("t1", "t1", 1)
        p.add("t1", "t1", "t0")
    p.mv("a0", "t1")
    p.ret()
    wanted = offset = 0
    for a, b in pairs:
        total, offset = dot(a, b, first, second, offset, xlen)
        wanted = 2 * wanted + total
    for native in (False, True):
        machine = Machine(xlen, 1 << 16, native=native)
        machine.load_words(0x1000, p.words())
        assert machine.call(0x1000, first, second).result == wanted % (1 << xlen)
        assert machine.state.offset == offset


def test_the_offset_stays_between_instructions() -> None:
    """The same 8x4 twice: first the lower half of rs2, then the upper."""
    first, second = 0x01010101, 0x77771111
    results = [dot(8, 4, first, second, offset, 32) for offset in (0, 16)]
    assert results == [(4, 16), (28, 0)]
