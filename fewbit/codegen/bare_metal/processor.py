"""The processors: RV32 or RV64, as LLVM and as the simulator know them.

They have no vectors, and no compressed instructions. Floats are in registers; the D extension is
there for the few sums that numerics.md wants in f64.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.toolchain.isa import Isa

CORES = ("small", "high", "cacheless")
"""The cores that cycles are estimated for; programs are the same for all of them."""


@dataclass(frozen=True)
class Processor:
    xlen: int

    @property
    def isa(self) -> Isa:
        name = f"rv{self.xlen}"
        return Isa(
            name,
            f"riscv{self.xlen}-unknown-elf",
            f"generic-{name}",
            "+m,+f,+d",
            vector_bits=32,
            registers=32,
            index_bits=self.xlen,
        )

    @property
    def index(self) -> str:
        """LLVM's type of sizes and addresses."""
        return f"i{self.xlen}"


def processor_of(target: str) -> Processor:
    """Return the processor that `vexii`, `vexii:rv32` or `vexii:rv64` means."""
    detail = TargetName.parse(target).detail
    known = {"": 32, "rv32": 32, "rv64": 64}
    if detail not in known:
        raise UsageError(
            f"there is no target '{target}'",
            hint="vexii is vexii:rv32; the other is vexii:rv64. cycles are reported for all cores",
        )
    return Processor(known[detail])
