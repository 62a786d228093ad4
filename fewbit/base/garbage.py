"""The search for cyclic garbage, held back while programs are made.

Graphs and modules are millions of objects that live until the end of a call, beside all that
PyTorch's modules hold. To look through them every 700 allocations finds nothing and takes a sixth
of the time. What was there before is left out of the search, as `gc.freeze` does it, and the search
itself is rarer; it goes on, because modules that passes have replaced are cyclic garbage, with
weights in it.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

THRESHOLDS = (100_000, 20, 20)
"""How many new objects start a search, and how many searches one of the next generation."""


_is_rare = False


@contextmanager
def collect_rarely() -> Generator[None]:
    """Search for garbage rarely, among new objects only; afterwards as before.

    A caller who has frozen objects, or turned the search off, keeps it as it is.
    """
    global _is_rare
    # Frozen objects are counted one by one, which calls in calls should not wait for.
    if _is_rare or not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    before = gc.get_threshold()
    _is_rare = True
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        _is_rare = False
