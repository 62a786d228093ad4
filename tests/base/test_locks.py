"""Locks that another process meets, and that end with the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OTHER = """
import os, sys
from fewbit.base.locks import lock_byte
file = os.open(sys.argv[1], os.O_RDWR)
try:
    lock_byte(file, int(sys.argv[2]))
except OSError:
    sys.exit(7)
"""


def test_a_byte_is_locked_by_one_process(tmp_path: Path) -> None:
    from fewbit.base.locks import lock_byte, unlock_byte

    path = tmp_path / "locks"
    path.touch()
    file = os.open(path, os.O_RDWR)

    def try_other(offset: int) -> int:
        words = [sys.executable, "-c", OTHER, str(path), str(offset)]
        return subprocess.run(words).returncode

    lock_byte(file, 3)
    assert (try_other(3), try_other(4)) == (7, 0)
    lock_byte(file, 4)
    unlock_byte(file, 3)
    assert try_other(3) == 0
    os.close(file)
