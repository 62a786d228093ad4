"""QEMU's processor (by the package unicorn) in the place of our simulator, memory shared with it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fewbit.riscv import elf
from fewbit.simulators.gemmini.model import Model
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.gemmini.simulate import GemminiSimulator

CUSTOM_3 = 0x7B
STOP = 0x8000
"""Where calls return to; nothing is there."""


@dataclass
class Returned:
    result: int


class UnicornMachine:
    """What the program that runs on it needs of a `Machine`."""

    def __init__(self, program: bytes, memory_bytes: int, model: Model) -> None:
        unicorn: Any = import_module("unicorn")
        r: Any = import_module("unicorn.riscv_const")
        self.r, self.model = r, model
        self.plain = Machine(64, memory_bytes, model)
        self.plain.load(program)
        self.executable = elf.read(program)
        self.uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64)
        memory = self.plain.memory
        self.uc.mem_map_ptr(0, memory.nbytes, unicorn.UC_PROT_ALL, memory.ctypes.data)
        self.uc.hook_add(unicorn.UC_HOOK_INTR, self._command)
        # Floating point is off until mstatus says otherwise.
        self.uc.reg_write(r.UC_RISCV_REG_MSTATUS, 0x6000)

    end = property(lambda self: self.plain.end)
    memory = property(lambda self: self.plain.memory)

    def write(self, address: Any, data: Any) -> None:
        self.plain.write(address, data)

    def read(self, address: Any, size: int) -> bytes:
        return self.plain.read(address, size)

    def _command(self, uc: Any, number: int, _: Any) -> None:
        assert number == 2, f"exception {number}"
        after = uc.reg_read(self.r.UC_RISCV_REG_PC)
        word = int.from_bytes(self.plain.read(after - 4, 4), "little")
        assert word & 0x7F == CUSTOM_3, f"{word:#010x} at {after - 4:#x}"
        rs1, rs2 = (
            uc.reg_read(self.r.UC_RISCV_REG_X0 + number) if number else 0
            for number in (word >> 15 & 31, word >> 20 & 31)
        )
        self.model.execute(word >> 25, rs1, rs2, self.plain.memory)

    def call(self, function: str, *arguments: int) -> Returned:
        r, uc = self.r, self.uc
        for number, argument in enumerate(arguments):
            uc.reg_write(r.UC_RISCV_REG_A0 + number, argument)
        uc.reg_write(r.UC_RISCV_REG_RA, STOP)
        uc.reg_write(r.UC_RISCV_REG_SP, self.memory.nbytes)
        uc.emu_start(self.plain.address(function), STOP)
        return Returned(uc.reg_read(r.UC_RISCV_REG_A0))


class OnUnicorn(GemminiSimulator):
    """Runs artifacts with the host on unicorn."""

    def machine(self, data_bytes: int) -> Any:
        plain = super().machine(data_bytes)
        return UnicornMachine(self._elf, plain.memory.nbytes, self.model)
