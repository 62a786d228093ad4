"""Atomic writes and names that stay in their folder."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from fewbit.base.files import inside, replacing_file, replacing_folder, sha256_of
from fewbit.errors import Error


def test_sha256_of_is_the_hash_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"fewbit")
    assert sha256_of(path) == hashlib.sha256(b"fewbit").hexdigest()


def test_sha256_of_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(Error, match="No such file"):
        sha256_of(tmp_path / "missing")


def test_replacing_file_makes_parents_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "file"
    for content in (b"one", b"two"):
        with replacing_file(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["file"]


def test_replacing_file_has_the_usual_permissions(tmp_path: Path) -> None:
    with replacing_file(tmp_path / "ours") as file:
        file.write(b"")
    (tmp_path / "usual").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "usual")}
    assert len(modes) == 1


@pytest.mark.parametrize("failure", [RuntimeError("boom"), KeyboardInterrupt()])
def test_replacing_file_keeps_the_old_file_on_failure(
    tmp_path: Path, failure: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write() -> None:
        with replacing_file(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_replacing_file_writes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with replacing_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_replacing_file_refuses_a_folder(tmp_path: Path) -> None:
    with pytest.raises(Error, match="folder") as caught, replacing_file(tmp_path) as file:
        file.write(b"x")
    assert caught.value.hint


def test_replacing_file_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Error, match="cannot write"), replacing_file(tmp_path / "file" / "x"):
        pass


def test_replacing_folder_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with replacing_folder(path) as folder:
        (folder / "a").write_bytes(b"1")
        assert not path.exists()
    assert os.listdir(path) == ["a"]
    with replacing_folder(path) as folder:
        (folder / "b").write_bytes(b"2")
        assert os.listdir(path) == ["a"]
    assert os.listdir(path) == ["b"]
    assert os.listdir(tmp_path) == ["out"]


def test_replacing_folder_keeps_the_old_one_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "a").write_bytes(b"1")

    def write() -> None:
        with replacing_folder(path) as folder:
            (folder / "b").write_bytes(b"2")
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        write()
    assert os.listdir(path) == ["a"]
    assert os.listdir(tmp_path) == ["out"]


def test_replacing_folder_moves_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "a").write_bytes(b"1")
    real = Path.rename
    calls: list[Path] = []

    def rename(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(Error, match="No space left"), replacing_folder(path) as folder:
        (folder / "b").write_bytes(b"2")
    assert os.listdir(path) == ["a"]
    assert os.listdir(tmp_path) == ["out"]


def test_inside_accepts_files_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    (tmp_path / "link").symlink_to("sub/file")
    assert inside(tmp_path, "sub/file") == (tmp_path / "sub" / "file").resolve()
    assert inside(tmp_path, "link") == (tmp_path / "sub" / "file").resolve()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../secret", "sub/../../secret", "/etc/hostname", "a\0b", "..\\secret"]
)
def test_inside_refuses_names_that_leave(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").touch()
    with pytest.raises(Error, match="leaves its folder"):
        inside(folder, name)


def test_inside_refuses_links_out_loops_folders_and_missing_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").touch()
    (tmp_path / "folder-too").mkdir()
    (tmp_path / "folder-too" / "secret").touch()
    (folder / "out").symlink_to("../secret")
    (folder / "dir").symlink_to("../folder-too")
    (folder / "loop").symlink_to("loop")
    for name, what in {
        "out": "outside",
        "dir/secret": "outside",
        "loop": "cannot read",
        "sub": "not a regular file",
        "missing": "No such file",
    }.items():
        with pytest.raises(Error, match=what):
            inside(folder, name)
