"""A program: a module, the weights that it refers to, and what it takes and gives.

On disk it is a folder of three files: the text, the weights, and a manifest with their hashes. It
is written beside its place and renamed, so a reader finds a whole program or none. Loading hashes
the text and the header of the weights; that header holds the hash of each tensor, which is checked
when the tensor is first used. So a large program opens at once and still cannot be run with other
weights than its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from fewbit.base.files import PathLike, inside, locked, replacing_folder
from fewbit.base.folders import FolderKind, Record, read_bytes
from fewbit.errors import Error, StoreError
from fewbit.ir.parse import parse_file, parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.program.references import check_references
from fewbit.program.signature import Signature, signature_of
from fewbit.program.store import WeightStore
from fewbit.program.tensor_file import Array

TEXT = "program.mlir"
WEIGHTS = "weights.safetensors"
MANIFEST = "program.json"
KIND = FolderKind("a program", MANIFEST, make="make")


class TextStamp(Record):
    sha256: str


class WeightsStamp(Record):
    """The header fixes the size of the file and the hash of every tensor in it."""

    header_sha256: str


class Manifest(Record):
    format: Literal["fewbit-program"] = "fewbit-program"
    version: Literal[1] = 1
    text: TextStamp
    weights: WeightsStamp
    recipe: str | None = None


@dataclass
class Program:
    module: ModuleOp
    store: WeightStore = field(default_factory=WeightStore)
    recipe: str | None = None
    """The recipe by which it was quantized, as `fewbit.Recipe` reads and prints it."""

    @staticmethod
    def parse(text: str, store: WeightStore | None = None, name: str = "<text>") -> Program:
        return Program(parse_module(text, name), store or WeightStore())

    @staticmethod
    def load(path: PathLike, store: WeightStore | None = None) -> Program:
        """Load a folder written by `save`, or a text file of MLIR with its own store, if any."""
        path = Path(path)
        if path.is_dir():
            return _load_folder(path)
        return Program(parse_file(path), store or WeightStore())

    def save(self, folder: PathLike) -> None:
        """Write the program as a folder, whole or not at all; it replaces an older program."""
        folder = Path(folder)
        with locked(folder.resolve().parent):
            _refuse_foreign(folder)
        text = self.text(locations=True).encode()
        with replacing_folder(folder) as target:
            (target / TEXT).write_bytes(text)
            weights = self.store.save(target / WEIGHTS)
            manifest = Manifest(
                text=TextStamp(sha256=hashlib.sha256(text).hexdigest()),
                weights=WeightsStamp(header_sha256=weights.header_sha256),
                recipe=self.recipe,
            )
            (target / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")

    @property
    def signature(self) -> Signature:
        return signature_of(self.module)

    def text(self, *, generic: bool = False, locations: bool = False) -> str:
        return print_module(self.module, generic=generic, locations=locations)

    def copy(self) -> Program:
        """Return a copy of the module; the weights themselves are shared."""
        store = WeightStore()
        store.merge(self.store)
        return Program(self.module.clone(), store, self.recipe)

    def verify(self, stage: str | None = None) -> None:
        """Check the module, then every weight that it refers to: presence, type and content."""
        verify(self.module, stage)
        check_references(self.module, self.store)

    def run(self, *inputs: Array, function: str | None = None) -> tuple[Array, ...]:
        """Interpret a function: the one named, else the entry."""
        from fewbit.interpreter.interpreter import interpret

        return interpret(self.module, *inputs, function=function, store=self.store)


def _load_folder(folder: Path) -> Program:
    manifest = _read_manifest(folder)
    text_path = _file(folder, TEXT)
    text = _read(text_path)
    KIND.compare_hash(text_path, manifest.text.sha256, hashlib.sha256(text).hexdigest())
    store = WeightStore.open(_file(folder, WEIGHTS))
    KIND.compare_hash(folder / WEIGHTS, manifest.weights.header_sha256, store.header_sha256)
    return Program(parse_module(text.decode(), str(text_path)), store, manifest.recipe)


def _read_manifest(folder: Path) -> Manifest:
    path = _file(folder, MANIFEST)
    return KIND.parse_manifest(Manifest, _read(path), path)


def _file(folder: Path, name: str) -> Path:
    try:
        return inside(folder, name)
    except Error as error:
        hint = f"a program folder holds {MANIFEST}, {TEXT} and {WEIGHTS}; give such a folder"
        raise StoreError(error.what, place=error.place, hint=hint) from error


def _read(path: Path) -> bytes:
    return read_bytes(path, hint="check its permissions")


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds anything but an older program, because saving replaces it."""
    KIND.refuse_foreign(folder, (TEXT, WEIGHTS, MANIFEST))
    if folder.exists() and any(folder.iterdir()):
        _read_manifest(folder)
