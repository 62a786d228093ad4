"""The packages and programs that fewbit works with, and the versions found here.

What should be there is read from fewbit's own metadata, so pyproject.toml stays the only list.
Nothing is imported to learn its version: a broken package must not break the report about it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.errors import MissingToolError

if TYPE_CHECKING:
    from packaging.requirements import Requirement


@dataclass(frozen=True)
class Package:
    name: str
    wanted: str
    """A version specifier; empty where any version will do."""
    found: str | None
    extra: str | None
    """The extra that asks for it; None for the core."""
    suits: bool


@dataclass(frozen=True)
class Tool:
    name: str
    purpose: str
    path: str | None
    version: str | None


EXTERNAL_TOOLS = {
    "iree-compile": "compiles for IREE",
    "iree-opt": "runs upstream MLIR passes",
    "iree-run-module": "runs what IREE compiled",
    "iree-lld": "links native code",
    "torch-mlir-opt": "runs torch-mlir's and upstream passes",
    "gcc": "not needed; builds C callers of compiled models",
    "clang": "not needed; builds C callers of compiled models",
    "qemu-riscv64": "optional; runs RISC-V code",
    "qemu-aarch64": "optional; runs ARM code",
    "node": "optional; runs WebAssembly",
    "chromium": "optional; shows reports in tests",
    "nvidia-smi": "optional; comes with NVIDIA's driver",
}
"""Programs by name, with what they are for; the first five come in the core wheels."""


BUNDLED = {
    "iree-lld": ("iree-base-compiler", "iree/compiler/_mlir_libs/iree-lld"),
    "iree-compile": ("iree-base-compiler", "iree/compiler/_mlir_libs/iree-compile"),
    "iree-opt": ("iree-base-compiler", "iree/compiler/_mlir_libs/iree-opt"),
    "iree-run-module": ("iree-base-runtime", "iree/_runtime_libs/iree-run-module"),
}
"""Programs inside of packages: which package, and where in it."""


def packages() -> list[Package]:
    """Return every package that fewbit's metadata asks for, the core first, each once."""
    try:
        from packaging.requirements import Requirement

        requirements = [Requirement(line) for line in metadata.requires("fewbit") or []]
    except ModuleNotFoundError as e:
        raise MissingToolError(
            f"fewbit is not installed in this Python: {e.name or e} is missing",
            hint="run 'make setup' in fewbit's folder, or 'pip install -e .'",
        ) from e
    once: dict[str, Requirement] = {}
    for requirement in requirements:
        once.setdefault(requirement.name, requirement)
    return [_look_up(requirement) for requirement in once.values()]


def tools() -> list[Tool]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_find_tool, EXTERNAL_TOOLS))


def tool_path(name: str) -> str | None:
    """Return a program beside this Python (its environment need not be active), or on PATH."""
    if name == "iree-lld":
        return _find_bundled(*BUNDLED[name])
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def program_path(name: str) -> str | None:
    """Return the program itself, where a wheel wraps it in a script that starts slowly."""
    return (_find_bundled(*BUNDLED[name]) if name in BUNDLED else None) or tool_path(name)


@cache
def iree_tool(name: str) -> str:
    """Return the path of `iree-compile` or `iree-opt`; the scripts take half a second more."""
    path = program_path(name)
    if path is None:
        hint = "pip install iree-base-compiler==3.13.0"
        raise MissingToolError(f"{name} is not installed", hint=hint)
    return path


def _look_up(requirement: Requirement) -> Package:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        version = None
    extra = re.search(r"""extra == ["']([\w-]+)["']""", str(requirement.marker or ""))
    return Package(
        name=requirement.name,
        wanted=str(requirement.specifier),
        found=version,
        extra=extra[1] if extra else None,
        suits=version is not None and requirement.specifier.contains(version, prereleases=True),
    )


def _find_bundled(package: str, path: str) -> str | None:
    try:
        suffix = ".exe" if sys.platform == "win32" else ""
        file = Path(str(metadata.distribution(package).locate_file(f"{path}{suffix}")))
    except metadata.PackageNotFoundError:
        return None
    return str(file) if file.is_file() else None


def _find_tool(name: str) -> Tool:
    path, program = tool_path(name), program_path(name)
    version = _version_of(program) if program else None
    return Tool(name, EXTERNAL_TOOLS[name], path, version)


def _version_of(path: str) -> str | None:
    flags = ["-flavor", "gnu", "--version"] if path.endswith("iree-lld") else ["--version"]
    try:
        done = subprocess.run(
            [path, *flags], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    number = re.search(r"\d+\.\d+[\w.+-]*", done.stdout)
    return number[0] if number else None
