"""How many threads a call is worth, or a program: more of them must give more than they cost.

To share work with a thread that is awake takes about a microsecond. One that sleeps may need 200
until it works, where the system wakes it on the caller's processor, as it does on virtual machines.

The answer is part of a compiled program, so it comes from the default coefficients and never from a
calibration: a program is the same wherever it is compiled.
"""

from __future__ import annotations

from functools import lru_cache

from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.kernel_call import KernelCall

ENOUGH = 1.02
"""Times the minimum that fewer threads may take, to be as good as more of them."""
WORTH_SHARING = 12e-6
"""Seconds of work on one thread for each more that is awake."""
WORTH_WAKING = 1e-3
"""Seconds of work on one thread for each more that sleeps, or has to start."""
BYTES_A_SECOND = 5e9
"""Bytes per second that a loop reads, about."""


@lru_cache(maxsize=4096)
def useful_threads(call: KernelCall, most: int) -> int:
    """Return the fewest threads that are about as fast as any number up to `most`."""
    model = Calibration.default(call.kernel.isa)
    counts = [count for count in _COUNTS if count < most] + [most]
    seconds = [model.seconds(call.on(count)) for count in counts]
    enough = ENOUGH * min(seconds)
    return next(count for count, time in zip(counts, seconds, strict=True) if time <= enough)


_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
