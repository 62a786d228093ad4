"""Files written whole or not at all, and names that cannot leave their folder.

A reader, or a crash, sees the old content or the new one: both are written under a temporary name
beside the target, flushed to disk and renamed over it. Names that come from a manifest are joined
to its folder only after a check, so that no manifest reaches a file elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias

from fewbit.base.locks import lock_whole
from fewbit.errors import Error, Place

PathLike: TypeAlias = str | os.PathLike[str]


def sha256_of(path: PathLike) -> str:
    """Return the hash of a whole file, as `sha256sum` prints it."""
    path = Path(path)
    with _reporting("read", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: PathLike, name: str) -> Path:
    """Return the regular file `name` of `folder`; refuse what is, or links to, anything outside."""
    folder = Path(folder)
    place = Place(file=str(folder / name) if "\0" not in name else str(folder))
    hint = "this folder was not written by fewbit, or was changed since: make it again"
    pure = PurePosixPath(name)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or {"\0", "\\"} & set(name):
        raise Error(f"the file name {name!r} leaves its folder", place=place, hint=hint)
    with _reporting("read", folder / name):
        home, path = folder.resolve(strict=True), _follow(folder / name)
    if not path.is_relative_to(home):
        raise Error(f"'{name}' is a link to a file outside its folder", place=place, hint=hint)
    if not path.is_file():
        raise Error(f"'{name}' is not a regular file", place=place, hint=hint)
    return path


def _follow(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except RuntimeError as error:  # how Python before 3.13 reports a loop of links
        raise OSError(None, str(error)) from error


@contextmanager
def replacing_file(path: PathLike) -> Generator[BinaryIO]:
    """Yield a file that becomes `path` when the block succeeds, and vanishes otherwise."""
    target = Path(path)
    with _reporting("write", target):
        if target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        target = target.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary_beside(target)
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            _flush_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: PathLike) -> Generator[Path]:
    """Yield a folder that takes the place of `path` when the block succeeds.

    What was at `path` is removed, so the caller asks first whether it may go. It is moved aside
    only once its successor is complete, and is moved back if the successor cannot take its place.
    When several write to one path at once, the last one to end decides.
    """
    target = Path(path)
    with _reporting("write", target):
        target = target.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary, aside = _temporary_beside(target), _temporary_beside(target)
        try:
            temporary.mkdir()
            yield temporary
            _flush_tree(temporary)
            with lock(target.parent):
                _swap(temporary, target, aside)
            _flush_folder(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def lock(folder: Path) -> Generator[None]:
    """Keep out others who change what is in `folder`, where it is there and can be locked.

    The lock is on the folder itself, so no lock file is left behind, and ends with the process.
    """
    descriptor = None
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        lock_whole(descriptor)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _swap(temporary: Path, target: Path, aside: Path) -> None:
    existed = target.exists()
    if existed:
        target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        if existed:
            aside.rename(target)
        raise


def _temporary_beside(target: Path) -> Path:
    return target.with_name(f".fewbit-{secrets.token_hex(6)}.tmp")


def _flush_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            with Path(parent, name).open("rb") as file:
                os.fsync(file.fileno())
        _flush_folder(Path(parent))


def _flush_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _reporting(verb: str, path: Path) -> Generator[None]:
    """Turn what the operating system refuses into an error of ours."""
    try:
        yield
    except OSError as error:
        raise Error(
            f"cannot {verb} this: {error.strerror or error}",
            place=Place(file=str(path)),
            hint="check the path, its permissions and the space left on the disk",
        ) from error
