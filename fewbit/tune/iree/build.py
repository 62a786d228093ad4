"""A program through IREE's compiler, with the configurations of its dispatches in and out.

What comes out besides the module: each dispatch as it was configured, and the instructions of each,
taken from the object file, where they do not depend on where others lie.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.targets.cpu.elf import SYMBOL_TABLE, sections
from fewbit.targets.iree.compiler import Made, compile_text
from fewbit.targets.iree.source import Source
from fewbit.tune.iree.configured import PREFIX, Configured

FUNCTION = 2


@dataclass(frozen=True)
class Build:
    made: Made
    dispatches: tuple[Configured, ...]
    code: Mapping[str, bytes]
    """The instructions of each dispatch, by the name of its function."""

    def code_of(self, dispatch: str) -> bytes | None:
        """Of a dispatch by the name of its executable."""
        found = [c for n, c in self.code.items() if n == dispatch or n.startswith(f"{dispatch}_")]
        return found[0] if found else None


def build(
    source: Source, flags: Sequence[str], name: str, substituted: Mapping[str, str] | None = None
) -> Build:
    """Compile, with other configurations in the place of IREE's, by the name of the dispatch."""
    with TemporaryDirectory(prefix="fewbit-tune-") as temporary:
        folder = Path(temporary)
        more = [
            f"--iree-hal-dump-executable-configurations-to={folder / 'configured'}",
            f"--iree-hal-dump-executable-intermediates-to={folder / 'objects'}",
        ]
        for dispatch, text in (substituted or {}).items():
            path = folder / f"{dispatch}.mlir"
            path.write_text(text, encoding="utf-8")
            more.append(f"--iree-hal-substitute-executable-configuration={dispatch}={path}")
        made = compile_text(source, (*flags, *more), name)
        files = sorted((folder / "configured").glob(f"{PREFIX}*.mlir"))
        code: dict[str, bytes] = {}
        for path in (folder / "objects").glob("*.o"):
            code |= functions_of(path.read_bytes())
        return Build(made, tuple(map(Configured.read, files)), code)


def functions_of(elf: bytes) -> dict[str, bytes]:
    """The bytes of each function of an object file."""
    found: dict[str, bytes] = {}
    parts = sections(elf)
    for table in parts:
        if table.kind != SYMBOL_TABLE:
            continue
        names = parts[table.link].offset
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, part, value, size = struct.unpack_from("<IBBHQQ", elf, at)
            if info & 15 != FUNCTION or not size or part >= len(parts):
                continue
            start = parts[part].offset + value
            text = elf[names + name : elf.index(b"\0", names + name)].decode()
            found[text] = elf[start : start + size]
    return found
