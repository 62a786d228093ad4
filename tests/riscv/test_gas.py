"""Words as the GNU assembler makes them, of every instruction that it knows."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from fewbit.riscv.encoding import Instruction, disassemble, encode
from fewbit.riscv.instructions import Format, Kind, Spec, specs

GAS = "riscv64-linux-gnu-as"
EACH = 8
EXACT = ("fcvt.d.w", "fcvt.d.wu", "fcvt.d.s")
"""Conversions that never round; gas writes them without a rounding mode."""


@pytest.mark.skipif(shutil.which(GAS) is None, reason=f"{GAS} is not here (binutils)")
@pytest.mark.parametrize("xlen", [32, 64])
def test_every_word_is_that_of_gas(xlen: int, tmp_path: Path) -> None:
    chosen = random.Random(0)
    words = [
        encode(_some(spec, xlen, chosen), xlen)
        for spec in specs(xlen).values()
        if spec.kind not in (Kind.DOT, Kind.COPROCESSOR)
        for _ in range(EACH)
    ]
    assert _assembled([_line(word, xlen) for word in words], xlen, tmp_path) == words


def _some(spec: Spec, xlen: int, chosen: random.Random) -> Instruction:
    register = {name: chosen.randrange(32) for name in ("rd", "rs1", "rs2", "rs3")}
    fields = spec.format.replace("(", " ").replace(")", "").replace("zimm", "rs1").split()
    imm = {
        Format.I: chosen.randrange(-2048, 2048),
        Format.LOAD: chosen.randrange(-2048, 2048),
        Format.STORE: chosen.randrange(-2048, 2048),
        Format.SHIFT: chosen.randrange(64 if xlen == 64 and not spec.mnemonic.endswith("w") else 32),
        Format.BRANCH: 2 * chosen.randrange(-2048, 2048),
        Format.J: 2 * chosen.randrange(-(1 << 19), 1 << 19),
        Format.U: chosen.randrange(1 << 20),
        Format.CSR: chosen.choice((1, 2, 3)),
        Format.CSRI: chosen.choice((1, 2, 3)),
        Format.FENCE: chosen.choice((0x0FF, 0x833, 0x031, 0x0C2)),
    }.get(spec.format, 0)  # fmt: skip
    rounding = chosen.choice((0, 1, 2, 3, 4, 7)) if spec.rounds else 7
    if spec.mnemonic in EXACT:
        rounding = 0
    given = {name: value for name, value in register.items() if name in fields}
    return Instruction(spec.mnemonic, imm=imm, rounding=rounding, **given)


def _line(word: int, xlen: int) -> str:
    """Our disassembly, with distances as gas wants them."""
    line = disassemble(word, xlen)
    head, _, last = line.rpartition(" ")
    if line.split()[0] in ("beq", "bne", "blt", "bge", "bltu", "bgeu", "jal"):
        return f"{head} . + {last}"
    return line.removesuffix(", rne") if line.split()[0] in EXACT else line


def _assembled(lines: list[str], xlen: int, folder: Path) -> list[int]:
    source, made, flat = (folder / name for name in ("a.s", "a.o", "a.bin"))
    source.write_text("\n".join([".option norelax", *lines, ""]))
    subprocess.run([GAS, f"-march=rv{xlen}imfd_zicsr_zifencei", source, "-o", made], check=True)
    objcopy = GAS.replace("-as", "-objcopy")
    subprocess.run([objcopy, "-O", "binary", "-j", ".text", made, flat], check=True)
    data = flat.read_bytes()
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
