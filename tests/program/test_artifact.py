"""Folders of compiled programs: written whole, checked when used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fewbit
from fewbit.errors import Error, StoreError, UsageError
from fewbit.program.artifact import MANIFEST, Manifest, Tensor, open_folder, write_folder

FILES = {"libnet.so": b"machine code", "net.h": b"/* header */"}


def manifest(name: str = "net") -> Manifest:
    tensor = Tensor(name="x", shape=(None, 4), element="f32")
    return Manifest(
        name=name, target="cpu", compiler="0", inputs=(tensor,), outputs=(), files={}
    )  # fmt: skip


def test_round_trip(tmp_path: Path) -> None:
    made = write_folder(tmp_path / "net", manifest(), FILES)
    found = open_folder(tmp_path / "net")
    assert found.manifest == made.manifest
    assert found.manifest.inputs[0].shape == (None, 4)
    for name, data in FILES.items():
        assert found.file(name).read_bytes() == data
    assert {path.name for path in (tmp_path / "net").iterdir()} == {MANIFEST, *FILES}
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


@pytest.mark.parametrize("damage", [b"", b"machine cod", b"machine codf", b"machine code "])
def test_changed_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    folder = write_folder(tmp_path / "net", manifest(), FILES)
    (tmp_path / "net" / "libnet.so").write_bytes(damage)
    with pytest.raises(StoreError, match="differs from its hash") as raised:
        folder.file("libnet.so")
    assert "compile or copy it again" in str(raised.value.hint)
    assert folder.file("net.h")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", manifest(), FILES)
    (tmp_path / "net" / "libnet.so").unlink()
    with pytest.raises(Error, match="cannot read"):
        folder.file("libnet.so")
    with pytest.raises(StoreError, match="names no such file"):
        folder.file("libother.so")


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "link"])
def test_manifest_reaches_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path / "net", manifest(), FILES)
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / "net" / "link").symlink_to(tmp_path / "secret")
    path = tmp_path / "net" / MANIFEST
    content = json.loads(path.read_text())
    content["files"][name] = "0" * 64
    path.write_text(json.dumps(content))
    with pytest.raises(Error, match=r"leaves its folder|outside its folder"):
        open_folder(tmp_path / "net").file(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a manifest"),
        ("{", "not a manifest"),
        ('{"format": "fewbit-program"}', "format"),
        ("[]", "not a manifest"),
        ("\udcff", "not a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write_folder(tmp_path / "net", manifest(), FILES)
    (tmp_path / "net" / MANIFEST).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StoreError, match=message):
        open_folder(tmp_path / "net")


@pytest.mark.parametrize("size", range(0, 300, 37))
def test_truncated_manifest_is_refused(tmp_path: Path, size: int) -> None:
    write_folder(tmp_path / "net", manifest(), FILES)
    path = tmp_path / "net" / MANIFEST
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(StoreError):
        open_folder(tmp_path / "net")


def test_newer_manifest_says_so(tmp_path: Path) -> None:
    write_folder(tmp_path / "net", manifest(), FILES)
    path = tmp_path / "net" / MANIFEST
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(StoreError) as raised:
        open_folder(tmp_path / "net")
    assert "newer fewbit" in str(raised.value.hint)


def test_folder_without_manifest_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no artifact: it has no manifest\.json"):
        open_folder(tmp_path)
    (tmp_path / "program.json").write_text("{}")
    with pytest.raises(StoreError, match="no artifact") as raised:
        open_folder(tmp_path)
    assert "saved and not compiled" in str(raised.value.hint)


def test_a_missing_folder_is_said_with_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no folder 'nope'") as raised:
        fewbit.load("nope")
    assert str(tmp_path / "nope") in str(raised.value.hint)
    assert "fewbit compile" in str(raised.value.hint)


def test_an_artifact_nearby_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "build" / "net", manifest(), FILES)
    with pytest.raises(UsageError) as missing:
        open_folder("net")
    assert str(missing.value.hint).endswith(f"did you mean '{Path('build/net')}'?")
    library = tmp_path / "build" / "net" / "libnet.so"
    with pytest.raises(StoreError, match="this is a file") as raised:
        open_folder(library)
    assert raised.value.hint == f"did you mean '{library.parent}'?"


def test_older_artifact_is_replaced(tmp_path: Path) -> None:
    write_folder(tmp_path / "net", manifest(), FILES)
    write_folder(tmp_path / "net", manifest("other"), {"libother.so": b"new"})
    assert open_folder(tmp_path / "net").manifest.name == "other"
    assert not (tmp_path / "net" / "libnet.so").exists()
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", manifest(), FILES)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("important")
    with pytest.raises(StoreError, match=r"not of an artifact: thesis\.txt"):
        write_folder(tmp_path / "mine", manifest(), FILES)
    write_folder(tmp_path / "net", manifest(), FILES)
    (tmp_path / "net" / "notes.txt").write_text("important")
    with pytest.raises(StoreError, match=r"not of an artifact: notes\.txt"):
        write_folder(tmp_path / "net", manifest(), FILES)
    with pytest.raises(StoreError, match="a file, not a folder"):
        write_folder(tmp_path / "net" / "notes.txt", manifest(), FILES)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "important"
    assert (tmp_path / "net" / "notes.txt").read_text() == "important"
