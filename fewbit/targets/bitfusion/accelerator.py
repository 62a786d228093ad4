"""The BitFusion accelerator: its array, buffers and memory, and what each event costs.

The array has `rows` inputs and `columns` outputs. Each of its units is 16 bricks, multipliers of 2
by 2 bits, which compose to one multiplier of 8 by 8 bits, or to more of fewer bits. Buffers
are double: half of each holds the tile that is computed with.

Energies are those of the original simulator for 45 nm: the synthesized array, CACTI's figures for
the banks of each buffer, and 15 pJ a bit of DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import WidthError

OUT_BITS = 32
"""Width of sums."""


@dataclass(frozen=True)
class Energy:
    """Nanojoules of a cycle of the whole array, and of a bit read from or written to a memory."""

    cycle: float = 3_673_500 * 32 / 500e6
    """The synthesized array of 4 x 4 units takes 3.6735 mW at 500 MHz; this one has 32 of them."""
    weight_read: float = 0.0006837010000000001 / 32
    weight_write: float = 0.000925317 / 32
    act_read: float = 0.00190318 / 32
    act_write: float = 0.00363853 / 32
    out_read: float = 0.00106097 / 32
    out_write: float = 0.00233869 / 32
    dram: float = 15e-3


@dataclass(frozen=True)
class Accelerator:
    """Sizes of one accelerator; buffers in bytes, bandwidth in bits a cycle, frequency in Hz."""

    rows: int = 16
    columns: int = 32
    weight_buffer: int = 65536
    act_buffer: int = 32768
    out_buffer: int = 16384
    bandwidth: int = 128
    frequency: float = 500e6
    most_bits: int = 8
    least_bits: int = 2
    energy: Energy = Energy()

    def parallel(self, act_bits: int, weight_bits: int) -> int:
        """Return MACs that one unit computes in a cycle; 3 bits count as 4, and 5 to 7 as 8."""
        for bits in (act_bits, weight_bits):
            if not 1 <= bits <= self.most_bits:
                raise WidthError(
                    f"the accelerator has no integers of {bits} bits",
                    hint=f"it has 1 to {self.most_bits}",
                )
        return (self.most_bits // max(act_bits, self.least_bits)) * (
            self.most_bits // max(weight_bits, self.least_bits)
        )


MICO = Accelerator()
"""As MiCo configures it."""

EYERISS = Accelerator(bandwidth=192)
"""As the paper compares it with Eyeriss."""

ACCELERATORS = {"mico": MICO, "eyeriss": EYERISS}
