"""Folders with a manifest: what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from fewbit.base.folders import FolderKind, Record, read_bytes
from fewbit.errors import StoreError

KIND = FolderKind("a herbarium", "plants.json", make="collect")


class Manifest(Record):
    version: Literal[1] = 1
    plants: list[str]


def parse(value: Any, path: Path = Path("folder/plants.json")) -> Manifest:
    return KIND.parse_manifest(Manifest, json.dumps(value).encode(), path)


def test_manifest() -> None:
    assert parse({"version": 1, "plants": ["fern"]}).plants == ["fern"]


@pytest.mark.parametrize(
    ("value", "what", "hint"),
    [
        ({"plants": "fern"}, "not a manifest of a herbarium: plants: ", "collect or copy it again"),
        ({"plants": [], "beetles": 1}, "beetles: ", "collect or copy it again"),
        ({"plants": ["fern", 3]}, r"plants\.1: ", "collect or copy it again"),
        ({"version": 2, "plants": []}, "version: ", "it was written by a newer fewbit: update"),
        ([], "not a manifest of a herbarium", "collect or copy it again"),
    ],
)
def test_bad_manifest(value: Any, what: str, hint: str) -> None:
    with pytest.raises(StoreError, match=what) as raised:
        parse(value)
    assert hint in str(raised.value.hint)
    assert raised.value.place is not None
    assert raised.value.place.file == str(Path("folder/plants.json"))


def test_bytes_that_are_no_json() -> None:
    with pytest.raises(StoreError, match="not a manifest of a herbarium"):
        KIND.parse_manifest(Manifest, b"\xff\x00{", Path("plants.json"))


def test_hashes_are_compared() -> None:
    KIND.compare_hash(Path("fern"), "ab", "ab")
    for found in ("cd", None):
        with pytest.raises(StoreError, match=r"differs from its hash in plants\.json") as raised:
            KIND.compare_hash(Path("fern"), "ab", found)
        assert raised.value.hint == KIND.remake


def test_what_may_be_replaced(tmp_path: Path) -> None:
    KIND.refuse_foreign(tmp_path / "missing", ())
    KIND.refuse_foreign(tmp_path, ())
    (tmp_path / "fern").touch()
    KIND.refuse_foreign(tmp_path, ("fern", "moss"))


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    for name in ("fern", "d", "c", "b", "a"):
        (tmp_path / name).touch()
    with pytest.raises(StoreError, match=r"not of a herbarium: a, b, c\n") as raised:
        KIND.refuse_foreign(tmp_path, ("fern",))
    assert "does not exist yet" in str(raised.value.hint)


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "fern"
    path.touch()
    with pytest.raises(StoreError, match="this is a file, not a folder"):
        KIND.refuse_foreign(path, ("fern",))


def test_read_bytes(tmp_path: Path) -> None:
    (tmp_path / "fern").write_bytes(b"green")
    assert read_bytes(tmp_path / "fern", "look again") == b"green"
    with pytest.raises(StoreError, match="cannot read this file: No such file") as raised:
        read_bytes(tmp_path / "moss", "look again")
    assert raised.value.hint == "look again"
