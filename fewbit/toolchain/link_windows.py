"""Libraries for Windows: a DLL, and the import library that programs link with.

The DLL has no code that runs when it is loaded or unloaded, and no variables of threads. What it
takes from the system is named by import libraries that are made on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.toolchain.isa import Isa
from fewbit.toolchain.lld import lld, write_object
from fewbit.toolchain.objects import emit_object, parse_ir

MACHINES = {"x86_64": "x64"}


def link_windows(
    objects: Sequence[bytes],
    name: str,
    isa: Isa,
    exports: Iterable[str],
    wanted: Mapping[str, Iterable[str]],
) -> Mapping[str, bytes]:
    """Return the files of a library: the DLL, and its import library."""
    machine = f"/machine:{MACHINES[isa.architecture]}"
    with TemporaryDirectory(prefix="fewbit-link-") as temporary:
        folder = Path(temporary)
        paths = [write_object(folder, f"{i}.o", data) for i, data in enumerate(objects)]
        paths += [import_library(folder, dll, names, isa) for dll, names in wanted.items()]
        library, imports = folder / f"{name}.dll", folder / f"{name}.lib"
        lld(
            [
                *("/dll", "/noentry", "/nodefaultlib", "/opt:ref", "/brepro", machine),
                *(f"/export:{each}" for each in exports),
                *(f"/out:{library}", f"/implib:{imports}", *paths),
            ],
            "link",
        )
        return {each.name: each.read_bytes() for each in (library, imports)}


def import_library(folder: Path, dll: str, names: Iterable[str], isa: Isa) -> str:
    """Return the path of a library that says which functions are in a DLL of the system's.

    It is what is left of a DLL with empty functions of these names.
    """
    functions = sorted(names)
    module = parse_ir("\n".join(f"define void @{name}() {{ ret void }}" for name in functions))
    module.triple = isa.triple
    inside = folder / f"for-{dll}"
    inside.mkdir()
    path = write_object(inside, "stand-in.o", emit_object(module, isa))
    library = inside / f"{dll}.lib"
    lld(
        [
            *("/dll", "/noentry", "/nodefaultlib", f"/machine:{MACHINES[isa.architecture]}"),
            *(f"/export:{name}" for name in functions),
            *(f"/out:{inside / dll}", f"/implib:{library}", path),
        ],
        "link",
    )
    return str(library)
