"""Systems that shared libraries are for: formats of files, their names, and what a system offers.

A library takes functions from the system's own libraries alone, and only those that are listed
here, so that it runs on every version of the system from the oldest on. A system is told by the
triple: Linux with glibc, if it says nothing else.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Format = Literal["elf", "coff", "macho"]

_MEMORY = "memcmp memcpy memmove memset"
_THREADS = """
clock_gettime getauxval getpid pthread_create pthread_join pthread_sigmask sched_yield syscall
"""
_WINDOWS_THREADS = """
CloseHandle CreateThread GetCurrentProcessId GetModuleHandleExW QueryPerformanceCounter
QueryPerformanceFrequency SwitchToThread WaitForSingleObject
"""
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fdim
floor fma fmax fmin fmod hypot lgamma log log10 log1p log2 modf nearbyint pow remainder rint round
sin sinh sqrt tan tanh tgamma trunc
"""
"""What every libm has, for doubles and floats."""
_UNIX_MATH = "fabs frexp ldexp"
_GLIBC_MATH = "exp10 fmaximum fminimum roundeven sincos"
_HALF = "__extendhfsf2 __truncdfhf2 __truncsfhf2"
"""Conversions for processors without f16."""


def _both(names: str) -> frozenset[str]:
    return frozenset(f"{name}{kind}" for name in names.split() for kind in ("", "f"))


@dataclass(frozen=True)
class System:
    """An operating system that loads shared libraries."""

    name: str
    title: str
    format: Format
    libraries: Mapping[str, frozenset[str]]
    """The symbols that may come from the system's own libraries, by the names of these."""
    prefix: str
    suffix: str
    has_threads: bool
    """Whether the runtime knows how threads are started there; else calls use the caller's."""

    def library(self, name: str) -> str:
        """Return what a shared library is called."""
        return f"{self.prefix}{name}{self.suffix}"


LINUX = System(
    "linux",
    "Linux",
    "elf",
    {
        "libc.so.6": frozenset(f"bcmp {_MEMORY} {_THREADS}".split()),
        "libm.so.6": _both(f"{_MATH} {_UNIX_MATH} {_GLIBC_MATH}"),
        "libgcc_s.so.1": frozenset(_HALF.split()),
    },
    "lib",
    ".so",
    has_threads=True,
)
ANDROID = System(
    "android",
    "Android",
    "elf",
    {
        "libc.so": frozenset(f"{_MEMORY} {_THREADS}".split()),
        "libm.so": _both(f"{_MATH} {_UNIX_MATH} sincos"),
    },
    "lib",
    ".so",
    has_threads=True,
)
"""From Android 6 (API 23) on, whose loader reads tables of symbols hashed as ours."""
MACOS = System(
    "macos",
    "macOS",
    "macho",
    {
        "/usr/lib/libSystem.B.dylib": _both(f"{_MATH} {_UNIX_MATH}")
        | frozenset(
            f"bzero __bzero {_MEMORY} memset_pattern4 memset_pattern8 memset_pattern16 __exp10 "
            "__exp10f __sincos_stret __sincosf_stret".split()
        ),
    },
    "lib",
    ".dylib",
    has_threads=False,
)
"""From macOS 11 on, the first on Arm."""
WINDOWS = System(
    "windows",
    "Windows",
    "coff",
    {
        "ucrtbase.dll": (_both(_MATH) - {"hypotf"})
        | frozenset(f"{_MEMORY} fabs frexp ldexp".split()),
        "kernel32.dll": frozenset(_WINDOWS_THREADS.split()),
        "api-ms-win-core-synch-l1-2-0.dll": frozenset(["WaitOnAddress", "WakeByAddressSingle"]),
    },
    "",
    ".dll",
    has_threads=True,
)
"""From Windows 10 on, of which the C runtime is a part."""

SYSTEMS = {each.name: each for each in (LINUX, WINDOWS, MACOS, ANDROID)}


def system_of(triple: str) -> System:
    """Return the system that code of a triple is for."""
    words = triple.split("-")
    if "windows" in words:
        return WINDOWS
    if any(word.startswith("macosx") for word in words):
        return MACOS
    return ANDROID if any(word.startswith("android") for word in words) else LINUX


def host_system() -> System:
    """Return the system of this machine."""
    return {"Windows": WINDOWS, "Darwin": MACOS}.get(platform.system(), LINUX)
