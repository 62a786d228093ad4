"""Bare-metal executables, by the LLD in the IREE compiler's wheel.

Code starts at BASE. Nothing is loaded by a system: whoever runs the program puts its segments where
they say, and calls its functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.toolchain.link import lld

BASE = 0x10000
"""Below it is nothing, so that null is no address."""


def link_executable(objects: Sequence[bytes], functions: Sequence[str]) -> bytes:
    """Link an executable with these functions, and all that they need, and return its bytes."""
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        paths: list[str] = []
        for number, data in enumerate(objects):
            path = Path(folder) / f"{number}.o"
            path.write_bytes(data)
            paths.append(str(path))
        made = Path(folder) / "program"
        kept = [f"--undefined={name}" for name in functions]
        lld(["-static", "-e", functions[0], f"--image-base={BASE}", "--gc-sections", *kept,
             "-z", "noexecstack", "--no-relax", "-o", str(made), *paths])  # fmt: skip
        return made.read_bytes()
