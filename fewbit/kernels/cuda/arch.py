"""The generations of GPUs that kernels are compiled for, and what each of them has.

A kernel is machine code for one generation: `sm_80` code runs on Ampere and, slower than it could,
on Ada. Hopper's own instructions (warpgroup matmuls, tensor maps) exist under the name `sm_90a`
alone, so Hopper is always compiled under that name.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UsageError


@dataclass(frozen=True)
class Arch:
    """One generation of GPUs."""

    name: str
    compute: int
    """The compute capability, 10 times: 90 for 9.0."""
    shared: int
    """Bytes of shared memory that a block may have."""
    multiprocessors: int
    """Multiprocessors of the usual server part; persistent grids are sized by it."""

    @property
    def code(self) -> str:
        """What compilers call it."""
        return f"sm_{self.compute}a" if self.compute >= 90 else f"sm_{self.compute}"

    def fits(self, dynamic: int, blocks: int = 1) -> bool:
        """Return whether so many blocks with this much shared memory fit on a multiprocessor.

        A block has up to a kilobyte of static memory, and the system takes another.
        """
        return (dynamic + 2048) * blocks <= self.shared + 1024

    @property
    def has_async_copies(self) -> bool:
        """Copies from global to shared memory that pass by the registers."""
        return self.compute >= 80

    @property
    def has_bf16(self) -> bool:
        """bf16 and tf32 in the tensor cores."""
        return self.compute >= 80

    @property
    def has_warpgroups(self) -> bool:
        """Matmuls of four warps together (wgmma), tensor maps and clusters of blocks."""
        return self.compute >= 90


TURING = Arch("turing", 75, 64 * 1024, 40)
AMPERE = Arch("ampere", 80, 163 * 1024, 108)
AMPERE_CONSUMER = Arch("ampere-consumer", 86, 99 * 1024, 84)
ADA = Arch("ada", 89, 99 * 1024, 142)
HOPPER = Arch("hopper", 90, 227 * 1024, 132)

ARCHS = (TURING, AMPERE, AMPERE_CONSUMER, ADA, HOPPER)


def find_arch(name: str) -> Arch:
    """Return the generation called `hopper`, `sm_90`, `sm_90a` or `90`."""
    for arch in ARCHS:
        if name in (arch.name, arch.code, f"sm_{arch.compute}", str(arch.compute)):
            return arch
    raise UsageError(
        f"no GPU generation is called '{name}'",
        hint="there are " + ", ".join(f"{arch.name} (sm_{arch.compute})" for arch in ARCHS),
    )
