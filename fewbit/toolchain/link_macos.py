"""Libraries for macOS: a dylib, signed by the linker itself as code that nobody vouches for.

What comes from the system is named by a text in place of its library. macOS loads no code on Arm
that is not signed, if only "ad hoc": by hashes of its pages. Who ships a library signs it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.toolchain.isa import Isa
from fewbit.toolchain.lld import lld, write_object
from fewbit.toolchain.macho import OLDEST

SYSTEM = "/usr/lib/libSystem.B.dylib"
"""What every library of macOS needs."""
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}


def link_macos(
    objects: Sequence[bytes], name: str, isa: Isa, wanted: Mapping[str, Iterable[str]]
) -> bytes:
    """Return a dylib that is found beside the program, or wherever that looks for libraries."""
    architecture, version = ARCHITECTURES[isa.architecture], ".".join(map(str, OLDEST))
    with TemporaryDirectory(prefix="fewbit-link-") as temporary:
        folder = Path(temporary)
        paths = [write_object(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        system = folder / "libSystem.tbd"
        system.write_text(_text_of(wanted.get(SYSTEM, ()), architecture))
        made = folder / name
        lld(
            [
                *("-arch", architecture, "-platform_version", "macos", version, version),
                *("-dylib", "-install_name", f"@rpath/{name}", "-dead_strip", "-adhoc_codesign"),
                *("-o", str(made), *paths, str(system)),
            ],
            "darwin",
        )
        return made.read_bytes()


def _text_of(names: Iterable[str], architecture: str) -> str:
    """Return what stands for the system's library: its path, and what is taken from it."""
    symbols = ", ".join(["dyld_stub_binder", *(f"'_{name}'" for name in sorted(names))])
    return f"""--- !tapi-tbd
tbd-version: 4
targets: [ {architecture}-macos ]
install-name: '{SYSTEM}'
current-version: 1
exports:
  - targets: [ {architecture}-macos ]
    symbols: [ {symbols} ]
...
"""
