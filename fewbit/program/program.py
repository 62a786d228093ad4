"""A program: a module, the weights that it refers to, and what it takes and gives.

On disk it is a folder of the text, the weights, a manifest with their hashes, and perhaps files
that go with the program to where it runs, such as the tokenizer of a language model. It is written
beside its place and renamed, so a reader finds a whole program or none. Loading hashes the text and
the header of the weights; that header holds the hash of each tensor, which is checked when the
tensor is first used. So a large program opens at once and still cannot be run with other weights
than its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from xdsl.dialects.builtin import ModuleOp

from fewbit.base.files import PathLike, inside, lock, replacing_folder
from fewbit.base.folders import FolderKind, Record, read_bytes
from fewbit.errors import Error, StoreError
from fewbit.ir.parse import parse_file, parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.numerics import Quantized
from fewbit.program.calls import Outputs, order_inputs
from fewbit.program.display import html_table, shorten_text, size_text
from fewbit.program.references import check_references
from fewbit.program.signature import Signature, signature_of
from fewbit.program.store import WeightStore

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
    files: dict[str, str] = Field(default_factory=dict[str, str])
    """SHA-256 of each file that goes with it, by its name."""


@dataclass(repr=False)
class Program:
    module: ModuleOp
    store: WeightStore = field(default_factory=WeightStore)
    recipe: str | None = None
    """The recipe by which it was quantized, as `fewbit.Recipe` reads and prints it."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What goes with it to where it runs, by the names of files; the compiler does not read it."""
    own_weights: Mapping[str, Quantized] = field(default_factory=dict[str, Quantized])
    """Weights that the file which it came from had quantized, by layer; they are read when asked
    for, by a recipe that leaves weights open. The store has the same weights as floats."""

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
        with lock(folder.resolve().parent):
            _refuse_foreign(folder)
        text = self.text(locations=True).encode()
        with replacing_folder(folder) as target:
            (target / TEXT).write_bytes(text)
            weights = self.store.save(target / WEIGHTS)
            manifest = Manifest(
                text=TextStamp(sha256=hashlib.sha256(text).hexdigest()),
                weights=WeightsStamp(header_sha256=weights.header_sha256),
                recipe=self.recipe,
                files={name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()},
            )
            for name, data in self.files.items():
                (target / name).write_bytes(data)
            (target / MANIFEST).write_text(manifest.to_text())

    @property
    def signature(self) -> Signature:
        return signature_of(self.module)

    def text(self, *, generic: bool = False, locations: bool = False) -> str:
        return print_module(self.module, generic=generic, locations=locations)

    def copy(self) -> Program:
        """Return a copy of the module; the weights themselves are shared."""
        store = WeightStore()
        store.merge(self.store)
        return Program(self.module.clone(), store, self.recipe, self.files, self.own_weights)

    def verify(self, stage: str | None = None) -> None:
        """Check the module, then every weight that it refers to: presence, type and content."""
        verify(self.module, stage)
        check_references(self.module, self.store)

    def run(self, *inputs: Any, function: str | None = None, **named: Any) -> Outputs:
        """Interpret a function: the one named, else the entry; inputs may be given by name."""
        from fewbit.interpreter.interpreter import interpret

        signature = signature_of(self.module, function)
        given = order_inputs([spec.name for spec in signature.inputs], inputs, named)
        outputs = interpret(self.module, *given, function=function, store=self.store)
        return Outputs(outputs, [spec.name for spec in signature.outputs])

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Interpret the program and return one output, or all of them, by order and by name."""
        outputs = self.run(*inputs, **named)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        layers = "float" if self.recipe is None else self.recipe
        return (
            f"Program({self._description()}, {layers}, {size_text(self.store.nbytes())} of weights)"
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = {"recipe": self.recipe or "float", "weights": size_text(self.store.nbytes())}
        signature = self._signature_or_none()
        inputs, outputs = (signature.inputs, signature.outputs) if signature else ((), ())
        title = signature.name if signature else "program"
        return html_table(f"Program {title}", map(str, inputs), map(str, outputs), rows)

    def _description(self) -> str:
        signature = self._signature_or_none()
        return "no single entry" if signature is None else shorten_text(str(signature))

    def _signature_or_none(self) -> Signature | None:
        """Return the signature; none of a module that has no single entry."""
        try:
            return self.signature
        except Error:
            return None


def _load_folder(folder: Path) -> Program:
    manifest = _read_manifest(folder)
    text_path = _file(folder, TEXT)
    text = _read(text_path)
    KIND.compare_hash(text_path, manifest.text.sha256, hashlib.sha256(text).hexdigest())
    store = WeightStore.open(_file(folder, WEIGHTS))
    KIND.compare_hash(folder / WEIGHTS, manifest.weights.header_sha256, store.header_sha256)
    module = parse_module(text.decode(), str(text_path))
    return Program(module, store, manifest.recipe, _load_files(folder, manifest))


def _load_files(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """Return the files that go with a program, compared with their hashes."""
    files: dict[str, bytes] = {}
    for name, recorded in manifest.files.items():
        files[name] = _read(_file(folder, name))
        KIND.compare_hash(folder / name, recorded, hashlib.sha256(files[name]).hexdigest())
    return files


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
    is_program = (folder / MANIFEST).exists()
    others = _read_manifest(folder).files if is_program else ()
    KIND.refuse_foreign(folder, (TEXT, WEIGHTS, MANIFEST, *others))
    if folder.exists() and any(folder.iterdir()):
        _read_manifest(folder)
