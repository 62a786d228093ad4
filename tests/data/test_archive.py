"""Tarballs: read within limits, whatever their headers say, and nothing written."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from fewbit.data import archive
from fewbit.data.archive import read_files
from fewbit.errors import Error
from tests.data.archives import write_folder, write_tarball


def test_members_are_found_by_the_end_of_their_names(tmp_path: Path) -> None:
    path = write_tarball(tmp_path / "a.tgz", {"deep/a": b"1", "ba": b"2", "../../b": b"3"})
    assert read_files(path, ("a", "b")) == {"a": b"1", "b": b"3"}
    assert [each.name for each in tmp_path.iterdir()] == ["a.tgz"]


def test_links_are_passed_over(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tarball:
        for name, kind in (("a", tarfile.SYMTYPE), ("b", tarfile.LNKTYPE), ("c", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(secret)
            tarball.addfile(member)
    assert read_files(path, ("a", "b", "c")) == {}


def test_two_files_of_one_name_are_an_error(tmp_path: Path) -> None:
    path = write_tarball(tmp_path / "a.tgz", {"a": b"1", "x/a": b"2"})
    with pytest.raises(Error, match="two files 'a'"):
        read_files(path, ("a",))


@pytest.mark.parametrize("name", ["a", "other"])
def test_a_bomb_is_stopped(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tarball(tmp_path / "a.tgz", {name: bytes(1 << 20)})
    assert path.stat().st_size < 1 << 12
    monkeypatch.setattr(archive, "LIMIT", 1 << 19)
    with pytest.raises(Error, match="more than"):
        read_files(path, ("a",))


def test_a_bomb_within_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(bytes(1 << 20))
    folder = write_folder(tmp_path / "folder", {"a.gz": bomb})
    path = write_tarball(tmp_path / "a.tar", {"a.gz": bomb}, "w")
    monkeypatch.setattr(archive, "LIMIT", 1 << 19)
    for source in (folder, path):
        with pytest.raises(Error, match="far too large"):
            read_files(source, ("a",))


def test_a_header_that_promises_too_much_is_an_error(tmp_path: Path) -> None:
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        member = tarfile.TarInfo("a")
        member.size, member.type = 1 << 40, kind
        path = tmp_path / "a.tar"
        path.write_bytes(member.tobuf() + bytes(1 << 12))
        with pytest.raises(Error, match="cannot be read"):
            read_files(path, ("a",))


def test_what_is_cut_off_or_no_tarball_is_an_error(tmp_path: Path) -> None:
    whole = write_tarball(tmp_path / "whole.tgz", {"a": bytes(range(256)) * 99}).read_bytes()
    plain = io.BytesIO(gzip.decompress(whole)).read()
    for content in (b"", b"text" * 500, whole[:-20], whole[:30], plain[:9000]):
        path = tmp_path / "damaged"
        path.write_bytes(content)
        with pytest.raises(Error, match="cannot be read") as raised:
            read_files(path, ("a",))
        assert raised.value.hint
