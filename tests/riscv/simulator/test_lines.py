"""Misses of data caches, against caches that are simulated set by set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.riscv.assembler import Assembler
from fewbit.simulators.riscv import Machine
from fewbit.simulators.riscv.lines import LINE, SETS, RecentLines


def missed(addresses: list[int], ways: int) -> int:
    sets: list[list[int]] = [[] for _ in range(SETS)]
    count = 0
    for line in (address // LINE for address in addresses):
        held = sets[line % SETS]
        if line in held:
            held.remove(line)
        else:
            count += 1
        held.append(line)
        del held[:-ways]
    return count


@given(st.lists(st.integers(0, 4 * SETS * LINE).map(lambda n: n // 512 * 512), max_size=200))
def test_recent_lines_are_what_caches_hold(addresses: list[int]) -> None:
    recent = RecentLines()
    for address in addresses:
        recent.touch(address)
    assert recent.misses == [missed(addresses, 1), missed(addresses, 2)]


@pytest.mark.parametrize("native", [True, False])
def test_loads_and_stores_of_a_program_are_counted_under_its_marks(native: bool) -> None:
    program = Assembler(32)
    program.symbol("copy")  # a0, a1: bytes from, to; a2: the end of the first
    for number, step in enumerate((4, 64)):
        program.li("t1", number)
        program.mark("t1")
        program.mv("a3", "a0")
        program.mv("a4", "a1")
        program.label(f"loop{number}")
        program.lw("t0", 0, "a3")
        program.sw("t0", 0, "a4")
        program.addi("a3", "a3", step)
        program.addi("a4", "a4", step)
        program.bne("a3", "a2", f"loop{number}")
    program.ret()
    machine = Machine(32, 1 << 20, native=native, lines=True)
    machine.load_words(0x1000, program.words(), {"copy": 0x1000})
    # Both lie in the same sets, so that one way holds either and two ways hold both.
    start, to, size = 0x10000, 0x20000, 2048
    machine.write(start, np.arange(size, dtype=np.uint8))
    for _ in range(2):
        execution = machine.call("copy", start, to, start + size)
        first, second = (execution.by_mark[mark].misses for mark in (0, 1))
        pairs = [(at, at - start + to) for at in range(start, start + size, 4)]
        touched = [address for pair in pairs for address in pair]
        assert first == (missed(touched, 1), missed(touched, 2)) == (1024, 64)
        assert second == (64, 0)
        assert execution.histogram.misses == (1088, 64)


def test_machines_that_do_not_count_have_no_misses() -> None:
    program = Assembler(32)
    program.lw("a0", 0, "a0")
    program.ret()
    machine = Machine(32, 1 << 20)
    machine.load_words(0x1000, program.words(), {"f": 0x1000})
    assert machine.call("f", 0x2000).histogram.misses == ()
