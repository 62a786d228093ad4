"""Folders of files with a manifest: what programs and artifacts have in common on disk.

A manifest says what the folder is and holds hashes of its files. A folder is written whole, in
place of an older one of its kind and of nothing else; what is read is compared with its hash.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fewbit.errors import Place, StoreError


class Record(BaseModel):
    """A manifest or a part of one: what is not known in it is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_text(self) -> str:
        """Return it as a file has it, for readers too."""
        return self.model_dump_json(indent=2) + "\n"


Model = TypeVar("Model", bound=Record)


@dataclass(frozen=True)
class FolderKind:
    what: str
    """With its article, as it stands in messages: `a program`."""
    manifest: str
    """The manifest's name."""
    make: str
    """The word for how one gets such a folder, in hints."""

    @property
    def remake(self) -> str:
        return f"the folder was changed or not fully copied: {self.make} or copy it again"

    def parse_manifest(self, model: type[Model], data: bytes, path: Path) -> Model:
        try:
            return model.model_validate_json(data)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            newer = field == "version"
            raise StoreError(
                f"not a manifest of {self.what}: {field}: {first['msg']}",
                place=Place(file=str(path)),
                hint="it was written by a newer fewbit: update" if newer else self.remake,
            ) from e

    def compare_hash(self, path: Path, recorded: str, actual: str | None) -> None:
        if recorded != actual:
            what = f"the content differs from its hash in {self.manifest}"
            raise StoreError(what, place=Place(file=str(path)), hint=self.remake)

    def refuse_foreign(self, folder: Path, known: Collection[str]) -> None:
        """Refuse a folder with unknown files in it, because writing replaces the folder."""
        if not folder.exists():
            return
        place, hint = Place(file=str(folder)), "give a folder that does not exist yet"
        if not folder.is_dir():
            raise StoreError("this is a file, not a folder", place=place, hint=hint)
        if foreign := sorted({path.name for path in folder.iterdir()} - set(known)):
            what = f"the folder holds files that are not of {self.what}: {', '.join(foreign[:3])}"
            raise StoreError(what, place=place, hint=hint)


def read_bytes(path: Path, hint: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        what = f"cannot read this file: {e.strerror}"
        raise StoreError(what, place=Place(file=str(path)), hint=hint) from e
