"""Shared libraries and bare-metal executables, by the LLD in the IREE compiler's wheel.

No C compiler takes part. What a library takes from others is named by stub libraries with their
sonames, linked on the spot: a linker only reads from them which symbols come from where, so nothing
of the processor's own system needs to be installed here. An executable starts at BASE and is loaded
by no system: whoever runs it puts its segments where they say, and calls its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.errors import UnsupportedError
from fewbit.toolchain import coff, macho
from fewbit.toolchain.elf import Symbol, symbols
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link_macos import link_macos
from fewbit.toolchain.link_windows import link_windows
from fewbit.toolchain.lld import lld, write_object
from fewbit.toolchain.objects import emit_object, parse_ir
from fewbit.toolchain.system import LINUX, System

BASE = 0x10000
"""Where executables begin. Nothing is below it, so that null is no address."""


def link_library(
    objects: Sequence[bytes],
    name: str,
    isa: Isa,
    exports: Sequence[str],
    libraries: Mapping[str, str] | None = None,
) -> Mapping[str, bytes]:
    """Link a shared library as its system has them; return its files by their names.

    `libraries` gives the names of other libraries by a prefix of their symbols.
    """
    system = isa.system
    if system.format == "elf":
        soname = system.library(name)
        return {soname: link_shared(objects, soname, isa, libraries)}
    if libraries:
        raise UnsupportedError(
            f"libraries for {system.name} call no libraries of others",
            hint="compile without --blas",
        )
    wanted = _group_by_library(objects, system)
    if system.format == "macho":
        return {system.library(name): link_macos(objects, system.library(name), isa, wanted)}
    return link_windows(objects, name, isa, exports, wanted)


def link_shared(
    objects: Sequence[bytes], soname: str, isa: Isa, libraries: Mapping[str, str] | None = None
) -> bytes:
    """Link a shared library of ELF and return its bytes.

    `libraries` gives the sonames of other libraries by a prefix of their symbols.
    """
    wanted = _group_by_library(objects, isa.system, libraries)
    with TemporaryDirectory(prefix="fewbit-link-") as temporary:
        folder = Path(temporary)
        paths = [write_object(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        paths += [stand_in(folder, name, names, isa) for name, names in sorted(wanted.items())]
        library = folder / soname
        lld(["-shared", "-soname", soname, "-z", "noexecstack", "-z", "relro", "-z", "now",
             "--no-undefined", "--build-id=sha1", "--gc-sections", "--hash-style=gnu",
             "-o", str(library), *paths])  # fmt: skip
        return library.read_bytes()


def link_executable(objects: Sequence[bytes], functions: Sequence[str]) -> bytes:
    """Link a bare-metal executable with these functions and all that they need."""
    with TemporaryDirectory(prefix="fewbit-link-") as temporary:
        folder = Path(temporary)
        paths = [write_object(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        program = folder / "program"
        kept = [f"--undefined={name}" for name in functions]
        lld(["-static", "-e", functions[0], f"--image-base={BASE}", "--gc-sections", *kept,
             "-z", "noexecstack", "--no-relax", "-o", str(program), *paths])  # fmt: skip
        return program.read_bytes()


def read_symbols(system: System) -> Callable[[bytes], Iterable[Symbol]]:
    """Return the function that yields symbols of a system's objects."""
    return {"elf": symbols, "coff": coff.symbols, "macho": macho.symbols}[system.format]


def _group_by_library(
    objects: Iterable[bytes], system: System, libraries: Mapping[str, str] | None = None
) -> dict[str, set[str]]:
    """Return the symbols that the objects lack, by the library that has them."""
    read = read_symbols(system)
    every = [symbol for data in objects for symbol in read(data)]
    defined = {symbol.name for symbol in every if symbol.defined}
    wanted: dict[str, set[str]] = {}
    for name in sorted({symbol.name for symbol in every if not symbol.defined} - defined):
        wanted.setdefault(_library_of(name, system, libraries or {}), set()).add(name)
    return wanted


def _library_of(name: str, system: System, libraries: Mapping[str, str]) -> str:
    for prefix, soname in libraries.items():
        if name.startswith(prefix):
            return soname
    for soname, names in system.libraries.items():
        if name in names:
            return soname
    raise UnsupportedError(
        f"the compiled program calls '{name}', which is in no library that we know"
        + ("" if system is LINUX else f" of {system.title}")
    )


def stand_in(folder: Path, soname: str, names: Iterable[str], isa: Isa) -> str:
    """Link a library of this soname with these symbols and nothing behind them."""
    module = parse_ir("\n".join(f"define void @{name}() {{ ret void }}" for name in sorted(names)))
    module.triple = isa.triple
    inside = folder / f"for-{soname}"
    inside.mkdir()
    library = inside / soname
    path = write_object(inside, "stand-in.o", emit_object(module, isa))
    lld(["-shared", "-soname", soname, "-o", str(library), path])
    return str(library)
