"""The linker LLD, in each of its flavors, from the IREE compiler's wheel."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fewbit.errors import MissingToolError, PassError
from fewbit.toolchain.tools import tool_path

Flavor = Literal["gnu", "link", "darwin", "wasm"]


def lld(arguments: Sequence[str], flavor: Flavor = "gnu") -> None:
    """Run the linker."""
    done = run_lld(arguments, flavor)
    if done.returncode != 0:
        said = f"{done.stderr}\n{done.stdout}".strip().splitlines() or ["it did not say why"]
        raise PassError(f"the linker failed: {said[0]}")


def run_lld(arguments: Sequence[str], flavor: Flavor) -> subprocess.CompletedProcess[str]:
    """Run the linker, and return what it printed."""
    linker = tool_path("iree-lld")
    if linker is None:
        raise MissingToolError(
            "there is no linker: iree-lld is missing",
            hint="install fewbit with its dependencies; iree-base-compiler has it",
        )
    return subprocess.run(
        [linker, "-flavor", flavor, *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def write_object(folder: Path, name: str, data: bytes) -> str:
    """Write an object for the linker, and return its path."""
    path = folder / name
    path.write_bytes(data)
    return str(path)
