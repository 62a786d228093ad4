"""What IREE writes for CUDA: the text of PTX, and what of it is code."""

from __future__ import annotations

import re

ENTRY = re.compile(r"\.entry (\S+)\((.*?)\)", re.S)


def entries_of(ptx: str) -> list[str]:
    """Return the names of its kernels."""
    return [match[1] for match in ENTRY.finditer(ptx)]


def instructions_of(ptx: str) -> str:
    """Return the text without comments, and without what only debuggers read."""
    lines = (line.partition("//")[0].strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith((".loc", ".file")))
