"""Shared libraries and bare-metal executables, by the LLD in the IREE compiler's wheel.

No C compiler takes part. What a library takes from others is named by stub libraries with their
sonames, linked on the spot: a linker only reads from them which symbols come from where, so nothing
of the processor's own system needs to be installed here. An executable starts at BASE and is loaded
by no system: whoever runs it puts its segments where they say, and calls its functions.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.errors import MissingToolError, PassError, UnsupportedError
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.objects import emit_object, parse_ir
from fewbit.toolchain.tools import tool_path

_LIBC = """
bcmp clock_gettime getauxval getpid memcmp memcpy memmove memset pthread_create pthread_join
pthread_sigmask sched_yield syscall
"""
_LIBM = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1
fabs fdim floor fma fmax fmaximum fmin fminimum fmod frexp hypot ldexp lgamma log log10 log1p log2
modf nearbyint pow remainder rint round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
"""
_LIBGCC = "__extendhfsf2 __truncdfhf2 __truncsfhf2"
"""Conversions for processors without f16."""
LIBRARIES = {
    "libc.so.6": frozenset(_LIBC.split()),
    "libm.so.6": frozenset(f"{name}{kind}" for name in _LIBM.split() for kind in ("", "f")),
    "libgcc_s.so.1": frozenset(_LIBGCC.split()),
}
"""The symbols that may come from a system's own libraries, by their sonames."""
BASE = 0x10000
"""Where executables begin. Nothing is below it, so that null is no address."""


def link_shared(
    objects: Sequence[bytes], soname: str, isa: Isa, libraries: Mapping[str, str] | None = None
) -> bytes:
    """Link a shared library and return its bytes.

    `libraries` gives the sonames of other libraries by a prefix of their symbols.
    """
    wanted = _group_by_library(objects, libraries or {})
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        paths = [_write(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        paths += [
            stand_in(Path(folder), name, names, isa) for name, names in sorted(wanted.items())
        ]
        library = Path(folder) / soname
        lld(["-shared", "-soname", soname, "-z", "noexecstack", "-z", "relro", "-z", "now",
             "--no-undefined", "--build-id=sha1", "--gc-sections", "--hash-style=gnu",
             "-o", str(library), *paths])  # fmt: skip
        return library.read_bytes()


def link_executable(objects: Sequence[bytes], functions: Sequence[str]) -> bytes:
    """Link a bare-metal executable with these functions and all that they need."""
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        paths = [_write(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        program = Path(folder) / "program"
        kept = [f"--undefined={name}" for name in functions]
        lld(["-static", "-e", functions[0], f"--image-base={BASE}", "--gc-sections", *kept,
             "-z", "noexecstack", "--no-relax", "-o", str(program), *paths])  # fmt: skip
        return program.read_bytes()


def _group_by_library(
    objects: Iterable[bytes], libraries: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return the symbols that the objects lack, by the soname of the library that has them."""
    every = [symbol for data in objects for symbol in symbols(data)]
    defined = {symbol.name for symbol in every if symbol.defined}
    wanted: dict[str, set[str]] = {}
    for name in sorted({symbol.name for symbol in every if not symbol.defined} - defined):
        wanted.setdefault(_library_of(name, libraries), set()).add(name)
    return wanted


def _library_of(name: str, libraries: Mapping[str, str]) -> str:
    for prefix, soname in libraries.items():
        if name.startswith(prefix):
            return soname
    for soname, names in LIBRARIES.items():
        if name in names:
            return soname
    raise UnsupportedError(
        f"the compiled program calls '{name}', which is in no library that we know"
    )


def stand_in(folder: Path, soname: str, names: Iterable[str], isa: Isa) -> str:
    """Link a library of this soname with these symbols and nothing behind them."""
    module = parse_ir("\n".join(f"define void @{name}() {{ ret void }}" for name in sorted(names)))
    module.triple = isa.triple
    inside = folder / f"for-{soname}"
    inside.mkdir()
    library = inside / soname
    path = _write(str(inside), "stand-in.o", emit_object(module, isa))
    lld(["-shared", "-soname", soname, "-o", str(library), path])
    return str(library)


def _write(folder: str, name: str, data: bytes) -> str:
    path = Path(folder) / name
    path.write_bytes(data)
    return str(path)


def lld(arguments: Sequence[str], flavor: str = "gnu") -> None:
    """Run the linker."""
    done = run_lld(arguments, flavor)
    if done.returncode != 0:
        raise PassError(f"the linker failed: {done.stderr.strip().splitlines()[0]}")


def run_lld(arguments: Sequence[str], flavor: str) -> subprocess.CompletedProcess[str]:
    """Run the linker, and return what it printed."""
    linker = tool_path("iree-lld")
    if linker is None:
        raise MissingToolError(
            "there is no linker: iree-lld is missing",
            hint="install fewbit with its dependencies; iree-base-compiler has it",
        )
    return subprocess.run(
        [linker, "-flavor", flavor, *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
