"""Programs as bytes, so that what is searched can go to other processes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.program.program import Program

Files = dict[str, bytes]


def pack_program(program: Program) -> Files:
    """Return the files of a program's folder."""
    with TemporaryDirectory(prefix="fewbit-search-") as folder:
        program.save(Path(folder) / "program")
        files = (Path(folder) / "program").iterdir()
        return {file.name: file.read_bytes() for file in files}


def unpack_program(files: Files) -> tuple[Program, TemporaryDirectory[str]]:
    """Return a program, and the folder that its weights are read from as long as it is kept."""
    folder = TemporaryDirectory(prefix="fewbit-search-")
    for name, data in files.items():
        (Path(folder.name) / name).write_bytes(data)
    return Program.load(folder.name), folder
