"""What LLVM says while it optimizes, kept from the user's stderr.

A loop that is asked to be vectorized and cannot be is told of, whatever the options, and llvmlite
has no handler for such messages: LLVM writes them to file descriptor 2 itself. So that descriptor
is a pipe for the time being, and what comes through it goes on to where stderr was, but for lines
of LLVM. Progress, which a thread writes meanwhile, is passed on at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, Thread

_BEGINNINGS = tuple(kind + b": <unknown>:0:0: " for kind in (b"remark", b"warning", b"note"))
_REMARK = re.compile(b"(?:" + b"|".join(_BEGINNINGS) + b")[^\n]*\n")
_STDERR = 2
_one_at_a_time = Lock()


@contextmanager
def without_remarks() -> Generator[None]:
    """Drop LLVM's remarks on code without source lines; everything else on stderr passes."""
    with _one_at_a_time:
        try:
            kept = os.dup(_STDERR)
        except OSError:  # a process without stderr
            yield
            return
        reading, writing = os.pipe()
        passing = Thread(target=_pass_on, args=(reading, kept), daemon=True)
        passing.start()
        os.dup2(writing, _STDERR)
        os.close(writing)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            # A process that was started meanwhile holds the pipe for as long as it lives.
            passing.join(timeout=1)


def _pass_on(reading: int, kept: int) -> None:
    held = b""
    while chunk := os.read(reading, 1 << 16):
        held = _REMARK.sub(b"", held + chunk)
        start = held.rfind(b"\n") + 1
        last = held[start:]
        if not any(last.startswith(b) or b.startswith(last) for b in _BEGINNINGS):
            start = len(held)
        _write(kept, held[:start])
        held = held[start:]
    _write(kept, held)
    os.close(reading)
    os.close(kept)


def _write(kept: int, data: bytes) -> None:
    while data:
        data = data[os.write(kept, data) :]
