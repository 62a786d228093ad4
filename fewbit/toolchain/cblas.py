"""CBLAS libraries by name: what their functions and files are called, and where they are.

    Cblas.of("openblas")            the system's OpenBLAS, needed as libopenblas.so.0
    Cblas.of("scipy-openblas32")    the one in the Python package of that name
    Cblas.of("/opt/x/libx.so")      a file: its own table says what its functions are called

A compiled library only records the name of the file that it needs, so a known name need not be
installed here; a file is looked into and never executed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from fewbit.errors import MissingToolError, StoreError, UnsupportedError, UsageError
from fewbit.toolchain.elf import dynamic_symbols, soname_of


@dataclass(frozen=True)
class Cblas:
    name: str
    """As it was asked for."""
    soname: str
    path: Path | None = None
    """The file, where the system's loader does not know it."""
    prefix: str = "cblas_"
    suffix: str = ""
    wide: bool = False
    """Whether sizes are 64-bit integers."""

    @staticmethod
    def of(name: str) -> Cblas:
        """Return the library that a name, a soname or a path means."""
        if name in KNOWN:
            return Cblas(name, KNOWN[name])
        if name in PACKAGES:
            return _in_package(name)
        path = Path(name)
        if path.is_file():
            return _in_file(name, path.resolve())
        if path.parent != Path() or ".so" not in path.name:
            raise UsageError(
                f"there is no BLAS '{name}'",
                hint=f"{', '.join([*KNOWN, *PACKAGES])}, or the path of a library with cblas_sgemm",
            )
        return Cblas(name, name)

    @staticmethod
    def of_record(name: str, needed: Collection[str]) -> Cblas:
        """Return the library that an artifact names, whose code needs these sonames.

        What an artifact says decides what is loaded into this process: its code must call for just
        that library, and the current folder plays no part.
        """
        is_soname = "/" not in name and name not in (*KNOWN, *PACKAGES)
        if not (is_soname or name in KNOWN or name in PACKAGES or Path(name).is_absolute()):
            raise _not_called(name)
        library = Cblas(name, name) if is_soname else Cblas.of(name)
        if library.soname not in needed:
            raise _not_called(name)
        return library

    def symbol(self, function: str) -> str:
        """Return what the library calls a function such as `sgemm`."""
        return f"{self.prefix}{function}{self.suffix}"

    @property
    def integer(self) -> str:
        return "i64" if self.wide else "i32"

    def load(self) -> None:
        """Load it into this process, so that libraries that need it find it."""
        try:
            ctypes.CDLL(str(self.path or self.soname), mode=ctypes.RTLD_GLOBAL)
        except OSError as e:
            raise MissingToolError(
                f"the library calls BLAS functions, and {self.soname} does not load: {e}",
                hint="install it, or put its folder into LD_LIBRARY_PATH",
            ) from e


def _not_called(name: str) -> StoreError:
    return StoreError(
        f"the artifact names '{name}' as its BLAS, which its code does not call",
        hint="the manifest was changed: compile the program again",
    )


def find_blas(name: str | None) -> Cblas | None:
    """Return the library of an option that may be absent."""
    return None if name is None else Cblas.of(name)


KNOWN = {
    "openblas": "libopenblas.so.0",
    "mkl": "libmkl_rt.so.2",
    "blis": "libblis.so.4",
    "atlas": "libcblas.so.3",
    "blas": "libblas.so.3",
}
"""Sonames of libraries that Linux distributions and vendors have."""

PACKAGES = {
    "scipy-openblas32": Cblas("", "", prefix="scipy_cblas_"),
    "scipy-openblas64": Cblas("", "", prefix="scipy_cblas_", suffix="64_", wide=True),
}
"""Python packages that hold an OpenBLAS."""

AFFIXES = [
    (Cblas("", "", prefix=prefix, suffix=suffix, wide=bool(suffix)))
    for suffix in ("", "64_", "_64")
    for prefix in ("cblas_", "scipy_cblas_")
]
"""How functions may be called in a file; names that end in 64 take 64-bit integers."""


def _in_package(name: str) -> Cblas:
    spec = find_spec(name.replace("-", "_"))
    folder = Path(spec.origin).parent / "lib" if spec is not None and spec.origin else None
    candidates = sorted(folder.glob("libscipy_openblas*.so")) if folder is not None else []
    if not candidates:
        raise MissingToolError(
            f"the Python package {name} is not installed", hint=f"pip install {name}"
        )
    path = candidates[0].resolve()
    soname = soname_of(path.read_bytes()) or path.name
    return replace(PACKAGES[name], name=name, path=path, soname=soname)


def _in_file(name: str, path: Path) -> Cblas:
    elf = path.read_bytes()
    if elf[:5] != b"\x7fELF\x02":
        raise UsageError(f"'{name}' is no shared library of 64 bits")
    affixes = _affixes(dynamic_symbols(elf))
    if affixes is None:
        raise UnsupportedError(f"the library {path.name} has no function cblas_sgemm")
    # Without a name in the file, loaders know it by its path.
    return replace(affixes, name=str(path), path=path, soname=soname_of(elf) or str(path))


def _affixes(symbols: Iterable[str]) -> Cblas | None:
    known = set(symbols)
    return next((each for each in AFFIXES if each.symbol("sgemm") in known), None)
