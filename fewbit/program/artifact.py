"""What comes out of the compiler: a folder of files, with a manifest of their hashes.

The folder is written beside its place and renamed, so a reader finds a whole artifact or none.
Opening it reads the manifest; a file is checked against its hash before it is used. The manifest
has a hash of itself, its *signature*: what loads a program trusts shapes, sizes and names in it,
and a native library carries the signature of the manifest that it was made with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Protocol

from pydantic import Field

from fewbit.base.files import PathLike, inside, lock, replacing_folder, sha256_of
from fewbit.base.folders import FolderKind, Record
from fewbit.errors import Error, Place, StoreError, UsageError
from fewbit.program.float_weights import FloatWeights

MANIFEST = "manifest.json"
STATE_FILE = "state.safetensors"
"""What the state of a program starts from, where that is not zeros."""
BUILD = Path("build")
"""The folder in which artifacts are put where no other is named."""
KIND = FolderKind("an artifact", MANIFEST, make="compile")
CHUNK = 1 << 24


class Streamed(Protocol):
    """A file that is written in pieces, and never in memory as a whole."""

    def pieces(self) -> Iterable[bytes | memoryview]: ...


Content = bytes | Path | Streamed
"""A file of an artifact: its bytes, a path from which it is copied, or what gives it in pieces."""
Size = Annotated[int, Field(ge=0, lt=1 << 62)]


class Tensor(Record):
    """An input or output; a dimension that is known only at run time is null."""

    name: str
    shape: tuple[Size | None, ...]
    element: str
    updates: str | None = None
    """The input that an output is the new value of; the two may be one array."""
    scalar: bool = False
    """Whether it is a number by itself, no tensor of rank 0."""

    def __str__(self) -> str:
        sizes = ["?" if size is None else str(size) for size in self.shape]
        return f"{self.name}: {'x'.join([*sizes, self.element])}"


class Function(Record):
    """One of several functions that a program may have."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class Constant(Record):
    """A weight as the code reads it, at an offset in the library's read-only data."""

    name: str
    offset: Size
    shape: tuple[Size, ...]
    dtype: str


class Variant(Record):
    """The code for one processor, in a library that has it for several."""

    name: str
    processor: str
    features: str
    arena_bytes: Size | None = None
    """What this one alone needs; the library's own number is enough for all."""
    weight_bytes: Size = 0
    """What this one reads; other variants may read the same bytes."""
    weights: tuple[Constant, ...] = ()


class Part(Record):
    """A piece of a program that was placed: an artifact of its own, in a folder of this one."""

    name: str
    """Also the folder's."""
    target: str
    inputs: tuple[str, ...]
    """The values that it takes, in the order of its own inputs."""
    outputs: tuple[str, ...]
    modules: tuple[str, ...] = ()
    """The modules of the model that it computes."""


class Transfer(Record):
    """A value that passes from one device to another in each run."""

    value: Tensor
    source: str
    """The target on whose device it is."""
    target: str
    bytes: Size | None
    """What is moved in a run; null where it depends on shapes."""
    formula: str
    """The same in words of sizes: `4 * batch * 10`."""


class Manifest(Record):
    format: Literal["fewbit-artifact"] = "fewbit-artifact"
    version: Literal[1] = 1
    name: str
    target: str
    """As it was asked for, `cpu:riscv64`; a processor by the name that we have for it."""
    compiler: str
    """The version of fewbit that made it."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    recipe: str | None = None
    arena_bytes: Size | None = None
    """Memory that a run needs beside inputs and outputs; null where it depends on shapes."""
    weight_bytes: Size = 0
    weights: tuple[Constant, ...] = ()
    """What lies behind the symbol `<name>_weights`, in its order."""
    float_weights: FloatWeights | None = None
    """The weights of a quantized program that have no few bits."""
    variants: tuple[Variant, ...] = ()
    """The variants of a library for several processors, best first."""
    options: dict[str, str] = Field(default_factory=dict[str, str])
    """The target's options and findings, for readers and for its own runtime."""
    functions: tuple[Function, ...] = ()
    """Where there may be several; `inputs` and `outputs` are those of the first."""
    parts: tuple[Part, ...] = ()
    """The parts of a program that was placed on several devices, in the order of their calls."""
    transfers: tuple[Transfer, ...] = ()
    """What passes between devices, in the order of a run."""
    results: tuple[str, ...] = ()
    """The value of the parts that each output is."""
    files: dict[str, str]
    """SHA-256 of each file, by its name; that of a part's begins with the part's folder."""
    signature: str = ""
    """SHA-256 of all of the above but the files."""


def signature_of(manifest: Manifest) -> str:
    """Return the hash of everything that a loader trusts in a manifest."""
    fields = manifest.model_dump(mode="json", exclude={"files", "signature"})
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Folder:
    """An artifact on disk."""

    path: Path
    manifest: Manifest

    def file(self, name: str) -> Path:
        """Return the path of a file of the artifact, once its hash is checked."""
        recorded, named = self.manifest.files.get(name), self.path / name
        if recorded is None:
            place = Place(file=str(named))
            raise StoreError("the manifest names no such file", place=place, hint=KIND.remake)
        path = inside(self.path, name)
        KIND.compare_hash(named, recorded, sha256_of(path))
        return path


def write_folder(path: PathLike, manifest: Manifest, files: Mapping[str, Content]) -> Folder:
    """Write an artifact, whole or not at all; it replaces an older artifact and nothing else."""
    path = Path(path)
    with lock(path.resolve().parent):
        _refuse_foreign(path)
    with replacing_folder(path) as target:
        hashes = {name: _write(target / name, data) for name, data in files.items()}
        signature = signature_of(manifest)
        manifest = manifest.model_copy(update={"files": hashes, "signature": signature})
        (target / MANIFEST).write_text(manifest.to_text())
    return Folder(path, manifest)


def _write(path: Path, data: Content) -> str:
    """Write a file and return its hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in _pieces(data):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _pieces(data: Content) -> Iterable[bytes | memoryview]:
    if isinstance(data, bytes):
        yield data
        return
    if not isinstance(data, Path):
        yield from data.pieces()
        return
    with data.open("rb") as file:
        yield from iter(partial(file.read, CHUNK), b"")


def open_folder(path: PathLike) -> Folder:
    path = Path(path)
    if not path.exists():
        raise UsageError(
            f"there is no folder '{path}'",
            hint=f"an artifact was looked for in {path.absolute()}; {_suggest_folder(path)}",
        )
    place = Place(file=str(path))
    if path.is_file():
        hint = _suggest_folder(path)
        raise StoreError("this is a file; an artifact is a folder", place=place, hint=hint)
    try:
        text = inside(path, MANIFEST).read_bytes()
    except (Error, OSError) as e:
        raise StoreError(
            f"this is no artifact: it has no {MANIFEST}", place=place, hint=_suggest_folder(path)
        ) from e
    manifest = KIND.parse_manifest(Manifest, text, path / MANIFEST)
    if manifest.signature != signature_of(manifest):
        raise StoreError(
            "the manifest differs from its signature",
            place=Place(file=str(path / MANIFEST)),
            hint="it was changed, or written by an older fewbit: compile the program again",
        )
    return Folder(path, manifest)


def _suggest_folder(path: Path) -> str:
    """Return what to give in place of a path that is no artifact."""
    from fewbit.program import program

    if (path / program.MANIFEST).is_file():
        return "it is a program that was saved and not compiled: 'fewbit compile' makes one of it"
    for near in (path.parent, BUILD / path):
        if (near / MANIFEST).is_file():
            return f"did you mean '{near}'?"
    return "give a folder that 'fewbit compile ... -t TARGET -o FOLDER' wrote"


def _refuse_foreign(path: Path) -> None:
    """Refuse a folder with other files in it than those of an older artifact, in its parts too."""
    if not (path / MANIFEST).exists():
        KIND.refuse_foreign(path, ())
        return
    names = [PurePosixPath(name) for name in (MANIFEST, *open_folder(path).manifest.files)]
    for folder in {PurePosixPath(), *(name.parent for name in names)}:
        known = {name.relative_to(folder).parts[0] for name in names if name.is_relative_to(folder)}
        KIND.refuse_foreign(path / folder, known)
