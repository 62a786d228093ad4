"""What comes out of the compiler: a folder of files, with a manifest of their hashes.

The folder is written beside its place and renamed, so a reader finds a whole artifact or none.
Opening it reads the manifest; a file is checked against its hash before it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fewbit.errors import Error, Place, StoreError
from fewbit.files import PathLike, inside, locked, replacing_folder

MANIFEST = "manifest.json"

_REMAKE = "the folder was changed or not fully copied: compile or copy it again"


class Tensor(BaseModel):
    """An input or output; a dimension that is known only at run time is null."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    shape: tuple[int | None, ...]
    element: str


class Constant(BaseModel):
    """A weight as the code reads it, at an offset in the library's read-only data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str


class Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["fewbit-artifact"] = "fewbit-artifact"
    version: Literal[1] = 1
    name: str
    target: str
    """As it was asked for, `cpu:riscv64`."""
    compiler: str
    """The version of fewbit that made it."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    recipe: str | None = None
    arena_bytes: int | None = None
    """Memory that a run needs beside inputs and outputs; null where it depends on shapes."""
    weight_bytes: int = 0
    weights: tuple[Constant, ...] = ()
    """What lies behind the symbol `<name>_weights`, in its order."""
    options: dict[str, str] = {}
    """What the target was told, and what it found out: for readers, and for its own runtime."""
    files: dict[str, str]
    """SHA-256 of each file, by its name."""


@dataclass(frozen=True)
class Folder:
    """An artifact on disk."""

    path: Path
    manifest: Manifest

    def file(self, name: str) -> Path:
        """A file of the artifact, after a look at its hash."""
        recorded = self.manifest.files.get(name)
        place = Place(file=str(self.path / name))
        if recorded is None:
            raise StoreError("the manifest names no such file", place=place, hint=_REMAKE)
        path = inside(self.path, name)
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as e:
            what = f"cannot read this file: {e.strerror}"
            raise StoreError(what, place=place, hint=_REMAKE) from e
        if found != recorded:
            what = f"the content differs from its hash in {MANIFEST}"
            raise StoreError(what, place=place, hint=_REMAKE)
        return path


def write_folder(path: PathLike, manifest: Manifest, files: Mapping[str, bytes]) -> Folder:
    """Write an artifact, whole or not at all; it replaces an older artifact and nothing else."""
    path = Path(path)
    with locked(path.resolve().parent):
        _refuse_foreign(path)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = manifest.model_copy(update={"files": hashes})
    with replacing_folder(path) as target:
        for name, data in files.items():
            (target / name).write_bytes(data)
        (target / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return Folder(path, manifest)


def open_folder(path: PathLike) -> Folder:
    path = Path(path)
    place = Place(file=str(path))
    try:
        text = inside(path, MANIFEST).read_bytes()
    except (Error, OSError) as e:
        raise StoreError(
            f"this is no artifact: it has no {MANIFEST}",
            place=place,
            hint="give a folder that 'fewbit compile ... -t TARGET -o FOLDER' wrote",
        ) from e
    try:
        return Folder(path, Manifest.model_validate_json(text))
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise StoreError(
            f"not a manifest of an artifact: {field}: {first['msg']}",
            place=Place(file=str(path / MANIFEST)),
            hint="it was written by a newer fewbit: update" if field == "version" else _REMAKE,
        ) from e


def _refuse_foreign(path: Path) -> None:
    """Writing replaces the folder, so it may hold nothing but an older artifact."""
    if not path.exists():
        return
    place, hint = Place(file=str(path)), "give a folder that does not exist yet"
    if not path.is_dir():
        raise StoreError("this is a file, not a folder", place=place, hint=hint)
    names = {entry.name for entry in path.iterdir()}
    if not names:
        return
    known = {MANIFEST, *open_folder(path).manifest.files} if MANIFEST in names else set[str]()
    if foreign := sorted(names - known):
        what = f"the folder holds files that are not of an artifact: {', '.join(foreign[:3])}"
        raise StoreError(what, place=place, hint=hint)
