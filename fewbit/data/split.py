"""Data in two parts: one to learn and to choose from, one to report a result on.

The test part is for the number that is reported, and for nothing that leads to it: widths,
calibration, epochs and search are chosen on (a part held out of) the training part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UsageError


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs `x` and labels `y`, int64, of both parts."""

    train_x: NDArray[Any]
    train_y: NDArray[np.int64]
    test_x: NDArray[Any]
    test_y: NDArray[np.int64]

    def hold_out(self, count: int) -> Split:
        """The training part alone, its last `count` examples in the place of the test part.

        What is chosen, a recipe say, is chosen by these.
        """
        size = len(self.train_x)
        if not 0 < count < size:
            raise UsageError(f"{count} of {size} training examples cannot be held out")
        kept = size - count
        return Split(
            self.train_x[:kept], self.train_y[:kept], self.train_x[kept:], self.train_y[kept:]
        )
