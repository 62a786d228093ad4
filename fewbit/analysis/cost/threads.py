"""How many threads a call is worth, or a program: more of them must give more than they cost.

Threads of a program start and end with a run of it, which is worth it for some work only.

The answer is part of a compiled program, so it comes from the default coefficients and never from a
calibration: a program is the same wherever it is compiled.
"""

from __future__ import annotations

from fewbit.analysis.cost.calibration import Calibration
from fewbit.analysis.cost.kernel_call import KernelCall

ENOUGH = 1.02
"""Times the least that threads may take, to be as good as more of them."""
WORTH_STARTING = 50e-6
"""Seconds of work on one thread for each that is started."""
BYTES_A_SECOND = 5e9
"""That a loop passes over, about."""


def useful_threads(call: KernelCall, most: int) -> int:
    """The fewest threads that are about as fast as any number up to `most`."""
    model = Calibration.default(call.kernel.isa)
    counts = [count for count in _COUNTS if count < most] + [most]
    seconds = [model.seconds(call.on(count)) for count in counts]
    enough = ENOUGH * min(seconds)
    return next(count for count, time in zip(counts, seconds, strict=True) if time <= enough)


_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
