"""The sizes of one Gemmini; the defaults are those that its generator makes."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UsageError

DIMS = (4, 8, 16, 32)
"""Sizes of arrays that streams are tested for."""


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

    @staticmethod
    def of(detail: str) -> Hardware:
        """Parse what stands behind the colon of a target: `gemmini:8x8`, or nothing."""
        if not detail:
            return Hardware()
        if detail not in (sizes := {f"{dim}x{dim}": dim for dim in DIMS}):
            raise UsageError(
                f"there is no target 'gemmini:{detail}'",
                hint=f"arrays are {', '.join(sizes)}; gemmini alone is gemmini:16x16",
            )
        return Hardware(dim=sizes[detail])

    def blocks(self, size: int) -> int:
        """Return the number of tiles along a dimension."""
        return -(-size // self.dim)

    @property
    def half_scratchpad(self) -> int:
        """What one loop command may use: the other half is for the next."""
        return self.scratchpad_rows // 2

    @property
    def half_accumulator(self) -> int:
        return self.accumulator_rows // 2
