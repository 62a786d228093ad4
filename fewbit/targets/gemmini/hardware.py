"""The sizes of one Gemmini; the defaults are those that its generator makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardware:
    """A square array of int8 multipliers with its two memories."""

    dim: int = 16
    """Rows and columns of the array, and elements in a row of either memory."""
    scratchpad_rows: int = 4 * 4096
    accumulator_rows: int = 1024
    block: int = 4
    """Tiles side by side that one `mvin` of bytes brings."""
    acc_block: int = 1
    """The same for i32."""
    bus_bytes: int = 16
    """A cycle's transfer, for the estimate only."""

    def blocks(self, size: int) -> int:
        """Tiles along a dimension."""
        return -(-size // self.dim)

    @property
    def half_scratchpad(self) -> int:
        """What one loop command may use: the other half is for the next."""
        return self.scratchpad_rows // 2

    @property
    def half_accumulator(self) -> int:
        return self.accumulator_rows // 2
