"""Tiles as objects of their own, compiled once for all programs and kept in the cache folder.

A kernel has some dozens of tiles, one for each height and width, which are most of a program's
LLVM IR and the same in every program for a processor. A tile's symbol ends in a hash of all that it
was made from: libraries that have tiles of the same name have the same tiles, whichever of them a
linker takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import groupby
from typing import Any

from fewbit.base.cache import cache_folder
from fewbit.base.files import replacing_file
from fewbit.errors import Error
from fewbit.kernels.emit import ZEROS, Function
from fewbit.kernels.kernel import define_zeros
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class TileObject:
    """Tiles of one kind."""

    name: str
    symbols: Mapping[str, str]
    """By the names that kernels call them."""
    data: bytes


def tile_objects(functions: Iterable[Function], isa: Isa) -> list[TileObject]:
    """Return one object for the tiles of each kind."""
    ordered = sorted(functions, key=lambda each: each.name)
    return [_tile_object(tuple(group), isa) for _, group in groupby(ordered, _kind)]


def tile_text(
    functions: Sequence[Function], symbols: Mapping[str, str] | None = None, linkage: str = ""
) -> str:
    """Return LLVM IR that defines tiles, under the names in `symbols` if there are any."""
    names = symbols or {each.name: each.name for each in functions}
    defined = [each.definition(names[each.name], linkage) for each in functions]
    declared = {line for each in functions for line in each.intrinsics}
    zeros = [define_zeros(functions[0].isa)] if any(f"@{ZEROS}" in text for text in defined) else []
    return "\n".join([*zeros, *defined, *sorted(declared), ""])


def tile_assembly(tiles: TileObject, functions: Iterable[Function], isa: Isa) -> str:
    own = [each for each in functions if each.name in tiles.symbols]
    return objects.emit_assembly(_optimize(own, tiles.symbols, isa), isa)


def _kind(function: Function) -> str:
    return function.name.rpartition("_")[0]


@cache
def _tile_object(functions: tuple[Function, ...], isa: Isa) -> TileObject:
    symbols = {each.name: f"{each.name}.{_hash([each], isa)[:16]}" for each in functions}
    name = f"{_kind(functions[0])}.{_hash(functions, isa)[:16]}"
    data = _read(name)
    if data is None:
        data = _compile(functions, symbols, isa)
        _write(name, data)
    return TileObject(f"{name}.o", symbols, data)


def _hash(functions: Sequence[Function], isa: Isa) -> str:
    processor = (isa.triple, isa.cpu, isa.features, version("llvmlite"))
    return hashlib.sha256("\n".join([*processor, *map(_text, functions)]).encode()).hexdigest()


def _text(function: Function) -> str:
    return "\n".join([function.text(), *sorted(function.intrinsics)])


def _compile(functions: Sequence[Function], symbols: Mapping[str, str], isa: Isa) -> bytes:
    return objects.emit_object(_optimize(functions, symbols, isa), isa)


def _optimize(functions: Sequence[Function], symbols: Mapping[str, str], isa: Isa) -> Any:
    # Weak: two libraries may have the same tile, beside others that differ. On Windows there are
    # no static libraries of ours, and weak names mean something else.
    linkage = "" if isa.system.format == "coff" else "weak_odr hidden"
    text = tile_text(functions, symbols, linkage)
    module = objects.link_modules([text], symbols.values(), isa)
    objects.optimize(module, isa)
    return module


def _read(name: str) -> bytes | None:
    try:
        kept = (cache_folder() / "tiles" / name).read_bytes()
    except OSError:
        return None
    digest, data = kept[:_DIGEST], kept[_DIGEST:]
    return data if hashlib.sha256(data).digest() == digest else None


def _write(name: str, data: bytes) -> None:
    """Keep an object for other processes; where there is no room for it, they make it again."""
    try:
        with replacing_file(cache_folder() / "tiles" / name) as file:
            file.write(hashlib.sha256(data).digest() + data)
    except (Error, OSError):
        return
