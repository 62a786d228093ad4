"""A program through IREE's compiler, with the configurations of its dispatches in and out.

What comes out besides the module: each dispatch as it was configured, and the instructions of each,
taken from the object file, where they do not depend on where others lie; for CUDA, from PTX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.targets.iree.compiler import IreeOutput, compile_text
from fewbit.targets.iree.source import Source
from fewbit.toolchain.elf import functions_of
from fewbit.tune.iree.configured import PREFIX, Configured
from fewbit.tune.iree.ptx import entries_of, instructions_of


@dataclass(frozen=True)
class Build:
    """A compiled program, with its dispatches as IREE configured them."""

    made: IreeOutput
    dispatches: tuple[Configured, ...]
    code: Mapping[str, bytes]
    """The instructions of each dispatch, by the name of its function."""

    def code_of(self, dispatch: str) -> bytes | None:
        """Return the code of a dispatch by the name of its executable."""
        codes = [c for n, c in self.code.items() if n == dispatch or n.startswith(f"{dispatch}_")]
        return codes[0] if codes else None


def build(
    source: Source,
    flags: Sequence[str],
    name: str,
    substituted: Mapping[str, str] | None = None,
    *,
    has_paths: bool = False,
) -> Build:
    """Compile, with other configurations in the place of IREE's, by the name of the dispatch.

    `has_paths`: flags may have paths that begin where this process is. Otherwise IREE runs where
    its files are, and a module is the same wherever that was.
    """
    with TemporaryDirectory(prefix="fewbit-tune-") as temporary:
        folder = Path(temporary)
        root = f"{folder}/" if has_paths else ""
        more = [
            f"--iree-hal-dump-executable-configurations-to={root}configured",
            f"--iree-hal-dump-executable-intermediates-to={root}objects",
            f"--iree-hal-dump-executable-binaries-to={root}binaries",
        ]
        for dispatch, text in (substituted or {}).items():
            file = f"{dispatch}.mlir"
            (folder / file).write_text(text, encoding="utf-8")
            more.append(f"--iree-hal-substitute-executable-configuration={dispatch}={root}{file}")
        compiled = compile_text(source, (*flags, *more), name, within=None if has_paths else folder)
        files = sorted((folder / "configured").glob(f"{PREFIX}*.mlir"))
        code: dict[str, bytes] = {}
        for path in (folder / "objects").glob("*.o"):
            code |= functions_of(path.read_bytes())
        for path in (folder / "binaries").glob("*.ptx"):
            ptx = path.read_text(encoding="utf-8")
            code |= dict.fromkeys(entries_of(ptx), instructions_of(ptx).encode())
        return Build(compiled, tuple(map(Configured.read, files)), code)
