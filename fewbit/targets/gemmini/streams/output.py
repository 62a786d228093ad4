"""How sums leave the accumulator: as i32, or requantized to bytes."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.simulators.gemmini.command import Dram, Pointer
from fewbit.simulators.gemmini.commands import Act, ConfigStore

X, WEIGHT, BIAS, Y = map(Pointer, ("x", "weight", "bias", "y"))


@dataclass(frozen=True)
class Output:
    """Sums as they are, or with a scale round(sum · scale) in -128..127, then ReLU."""

    scale: float | None = None
    relu: bool = False

    @property
    def full(self) -> bool:
        return self.scale is None

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 4 if self.full else 1

    def config(self, stride: int) -> ConfigStore:
        """Return rows of this many elements."""
        scale = 1.0 if self.scale is None else self.scale
        return ConfigStore(activation=self.activation, stride=stride * self.size, scale=scale)

    @property
    def activation(self) -> Act:
        return Act.RELU if self.relu else Act.NONE


I32 = Output()


def only_if(condition: bool, address: Dram) -> Dram:
    return address if condition else 0
