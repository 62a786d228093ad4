"""Cores of microcontrollers, as LLVM and as our kernels know them.

A core computes floats in registers, or by functions that a library brings along; and it multiplies
integers one by one, in pairs (`dsp`, Armv7E-M and Armv8-M), or sixteen at a time (`mve`, Helium).
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.toolchain.isa import Isa

Family = Literal["plain", "dsp", "mve"]


@dataclass(frozen=True)
class Core:
    """A core, with the names by which LLVM knows it."""

    name: str
    about: str
    triple: str
    cpu: str
    features: str
    family: Family
    has_floats: bool
    """Whether float32 is computed in registers."""
    abi: str = ""

    xlen = 32
    is_small = True
    """Whether small code is the faster one."""
    has_offsets = False
    """Whether addresses of memory have an offset without a sign, which may not wrap."""
    rounds_to_floats = False
    """Whether the nearest integer is found as a float first."""

    @property
    def isa(self) -> Isa:
        return Isa(
            self.name,
            self.triple,
            self.cpu,
            self.features,
            vector_bits=32,
            registers=16 if self.is_arm else 32,
            index_bits=32,
            abi=self.abi,
            is_static=True,
        )

    @property
    def is_arm(self) -> bool:
        return self.triple.startswith("thumb")

    @property
    def has_hard_abi(self) -> bool:
        """Whether floats are passed in float registers."""
        return self.has_floats


def _arm(name: str, about: str, arch: str, family: Family, features: str = "") -> Core:
    is_hard = family != "plain"
    triple = f"thumb{arch}-none-eabi{'hf' if is_hard else ''}"
    return Core(name, about, triple, name, features, family, is_hard)


def _riscv(extensions: str) -> Core:
    has_floats = "f" in extensions
    features = ",".join(f"+{letter}" for letter in extensions.removeprefix("i"))
    return Core(
        f"rv32{extensions}",
        "RISC-V",
        "riscv32-unknown-none-elf",
        "generic-rv32",
        features,
        "plain",
        has_floats,
        "ilp32f" if has_floats else "ilp32",
    )


CORES = {
    core.name: core
    for core in (
        _arm("cortex-m0plus", "Armv6-M", "v6m", "plain"),
        _arm("cortex-m3", "Armv7-M", "v7m", "plain"),
        _arm("cortex-m4", "Armv7E-M with an FPU", "v7em", "dsp"),
        _arm("cortex-m7", "Armv7E-M with an FPU", "v7em", "dsp"),
        _arm("cortex-m33", "Armv8-M with an FPU", "v8m.main", "dsp"),
        _arm("cortex-m55", "Armv8.1-M with Helium", "v8.1m.main", "mve"),
        _riscv("imc"),
        _riscv("imac"),
        _riscv("imafc"),
    )
}
DEFAULT = "cortex-m4"


def core_of(target: str) -> Core:
    """Return the core that `mcu` or `mcu:cortex-m4` means."""
    detail = TargetName.parse(target).detail or DEFAULT
    if detail in CORES:
        return CORES[detail]
    close = get_close_matches(detail, CORES, n=1)
    meant = f"did you mean mcu:{close[0]}? " if close else ""
    raise UsageError(f"there is no target '{target}'", hint=f"{meant}cores are {', '.join(CORES)}")
