"""Locks among processes, which the system releases with the process that has them.

Windows locks no folders, so there `lock_whole` does nothing: who replaces a folder at the same
time as another finds that it is in use.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def lock_whole(descriptor: int) -> None:
        """Wait for a file or folder, and lock it."""

    def lock_byte(descriptor: int, offset: int) -> None:
        """Lock a byte of a file; an OSError says that another process has it."""
        os.lseek(descriptor, offset, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def unlock_byte(descriptor: int, offset: int) -> None:
        os.lseek(descriptor, offset, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def lock_whole(descriptor: int) -> None:
        """Wait for a file or folder, and lock it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def lock_byte(descriptor: int, offset: int) -> None:
        """Lock a byte of a file; an OSError says that another process has it."""
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)

    def unlock_byte(descriptor: int, offset: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, offset)
