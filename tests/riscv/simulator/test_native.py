"""Machine code and Python agree on every floating-point instruction, whatever registers hold.

Unicorn is no judge of singles that are not boxed, nor of signalling NaNs: here both are in.
"""

from itertools import product

import numpy as np
import pytest

from fewbit.riscv.assembler import Assembler
from fewbit.riscv.encoding import ROUNDING
from fewbit.riscv.instructions import Kind, Spec, specs
from fewbit.simulators.riscv import Machine

BOX = 0xFFFFFFFF << 32
SINGLES = (
    0, 1 << 31, 0x3F800000, 0xC0200000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345,
    1, 0x80000001, 0x7F7FFFFF, 0x4F000000, 0x5F000000, 0xBF7FFFFF,
)  # fmt: skip
DOUBLES = (
    0, 1 << 63, 0x3FF0000000000000, 0xC004000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0x7FF0000000000001, 1, 0x7FEFFFFFFFFFFFFF, 0x41DFFFFFFFE00000,
    0x43E0000000000000, 0x3690000000000000, 0x47EFFFFFF0000000,
)  # fmt: skip
VALUES = [*(BOX | bits for bits in SINGLES), *DOUBLES]
IN, OUT = 0x10000, 0x40000


def floating(xlen: int) -> list[Spec]:
    kinds = (Kind.FLOAT, Kind.FLOAT_DIVIDE)
    return [spec for spec in specs(xlen).values() if spec.kind in kinds]


def results(spec: Spec, xlen: int, mode: str, table: list[tuple[int, ...]], native: bool) -> bytes:
    """The instruction on every row of the table, each of three registers."""
    a, floats = Assembler(xlen), spec.floats.split()
    a.li("a0", IN)
    a.li("a1", OUT)
    a.li("a2", IN + 24 * len(table))
    a.label("loop")
    a.fld("fa1", 0, "a0")
    a.fld("fa2", 8, "a0")
    a.fld("fa3", 16, "a0")
    a.lw("t1", 0, "a0") if xlen == 32 else a.ld("t1", 0, "a0")
    names = {"rd": "fa0", "rs1": "fa1", "rs2": "fa2", "rs3": "fa3"}
    operands = [
        names[name] if name in floats else {"rd": "t0", "rs1": "t1"}[name]
        for name in spec.format.split()
    ]
    a.emit(spec.mnemonic, *operands, rounding=mode)
    if "rd" in floats:
        a.fsd("fa0", 0, "a1")
    else:
        a.sw("t0", 0, "a1") if xlen == 32 else a.sd("t0", 0, "a1")
    a.addi("a0", "a0", 24)
    a.addi("a1", "a1", 8)
    a.bne("a0", "a2", "loop")
    a.ret()
    machine = Machine(xlen, 1 << 19, native=native)
    machine.load_words(0x1000, a.words())
    machine.write(IN, np.array(table, np.uint64))
    machine.call(0x1000)
    return machine.read(OUT, 8 * len(table))


@pytest.mark.parametrize("xlen", [32, 64])
def test_every_instruction_on_odd_values(xlen: int) -> None:
    random = np.random.default_rng(xlen)
    pairs = list(product(VALUES, VALUES))[::3]
    thirds = random.choice(np.array(VALUES, np.uint64), len(pairs))
    table = [(a, b, int(c)) for (a, b), c in zip(pairs, thirds, strict=True)]
    for spec in floating(xlen):
        short = table if "rs2" in spec.format else table[:: len(VALUES) // 3]
        for mode in ROUNDING[:5] if spec.mnemonic.startswith("fcvt") else ("rne",):
            found = results(spec, xlen, mode, short, native=True)
            assert found == results(spec, xlen, mode, short, native=False), (spec.mnemonic, mode)
