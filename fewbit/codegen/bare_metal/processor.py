"""The processors: RV32 or RV64, as LLVM and as the simulator know them.

They have no vectors, and no compressed instructions. Floats are in registers, of 64 bits for the
few sums that numerics.md wants in f64; RV32 also goes without these, or without any floats. Then
functions of ours compute on the bits of floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.riscv.object_file import FloatAbi
from fewbit.toolchain.isa import Isa

CORES = ("small", "high", "cacheless")
"""The cores that cycles are estimated for; programs are the same for all of them."""


Floats = Literal["", "f", "d"]
"""Extensions of floats: none, of 32 bits, of 32 and 64 bits."""
_FEATURES: dict[Floats, str] = {"": "+m", "f": "+m,+f", "d": "+m,+f,+d"}
_ABI: dict[Floats, FloatAbi] = {"": "soft", "f": "single", "d": "double"}


@dataclass(frozen=True)
class Processor:
    xlen: int
    floats: Floats = "d"

    @property
    def isa(self) -> Isa:
        name = f"rv{self.xlen}"
        return Isa(
            name,
            f"riscv{self.xlen}-unknown-elf",
            f"generic-{name}",
            _FEATURES[self.floats],
            vector_bits=32,
            registers=32,
            index_bits=self.xlen,
            abi=f"{'ilp32' if self.xlen == 32 else 'lp64'}{self.floats}",
        )

    @property
    def index(self) -> str:
        """LLVM's type of sizes and addresses."""
        return f"i{self.xlen}"

    @property
    def float_abi(self) -> FloatAbi:
        """How functions pass floats: all objects of a program must agree."""
        return _ABI[self.floats]


DETAILS = {
    "rv32": Processor(32),
    "rv32imf": Processor(32, "f"),
    "rv32im": Processor(32, ""),
    "rv64": Processor(64),
}
"""Processors by what may follow `vexii:`."""


def processor_of(target: str) -> Processor:
    """Return the processor that `vexii`, `vexii:rv32imf` or `vexii:rv64` means."""
    detail = TargetName.parse(target).detail or "rv32"
    if detail not in DETAILS:
        raise UsageError(
            f"there is no target '{target}'",
            hint=f"vexii is vexii:rv32; there are {', '.join(DETAILS)}, and cycles of all cores",
        )
    return DETAILS[detail]
