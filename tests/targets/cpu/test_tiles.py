"""Tiles that programs share: made once, found again, and never those of another processor."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import fewbit
from fewbit.codegen import tiles
from fewbit.codegen.tiles import tile_objects
from fewbit.kernels import Matmul
from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import functions_of
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.isa import Isa
from tests.targets.cpu.programs import layers


def tiles_of(isa: Isa) -> list[Function]:
    return [each for each in functions_of([Matmul(isa)], isa) if each.apart][:2]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path))
    tiles._tile_object.cache_clear()  # pyright: ignore[reportPrivateUsage]
    return tmp_path / "tiles"


def test_an_object_is_kept_and_found_again(cache: Path) -> None:
    isa = Isa.of("host")
    (made,) = tile_objects(tiles_of(isa), isa)
    assert {each.name for each in symbols(made.data) if each.defined} >= set(made.symbols.values())
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    tiles._tile_object.cache_clear()  # pyright: ignore[reportPrivateUsage]
    (found,) = tile_objects(tiles_of(isa), isa)
    assert found == made
    assert kept.stat().st_mtime_ns == before


def test_a_damaged_object_is_made_again(cache: Path) -> None:
    isa = Isa.of("host")
    (made,) = tile_objects(tiles_of(isa), isa)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    tiles._tile_object.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert tile_objects(tiles_of(isa), isa) == [made]
    tiles._tile_object.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert tiles._read(kept.name) == made.data  # pyright: ignore[reportPrivateUsage]


def test_processors_have_tiles_of_their_own() -> None:
    v3, v4 = Isa.of("x86-64-v3"), Isa.of("x86-64-v4")
    (a,), (b,) = tile_objects(tiles_of(v3), v3), tile_objects(tiles_of(v4), v4)
    assert not set(a.symbols.values()) & set(b.symbols.values())


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_two_static_libraries_in_one_program(tmp_path: Path) -> None:
    """They have most tiles in common, and each has some that the other lacks."""
    for name, bits in (("one", 8), ("two", 4)):
        fewbit.compile(layers(bits=bits), "cpu", tmp_path / name, name=name)
    source = tmp_path / "both.c"
    source.write_text(
        '#include "one.h"\n#include "two.h"\n'
        "int main(void) { return one_arena_bytes(0) && two_arena_bytes(0) && one_run != two_run ? 0 : 1; }\n"
    )
    given = [f"{tmp_path}/{name}/lib{name}.a" for name in ("one", "two")]
    command = [
        "gcc",
        f"-I{tmp_path}/one",
        f"-I{tmp_path}/two",
        str(source),
        *given,
        "-lm",
        "-pthread",
    ]
    done = subprocess.run([*command, "-o", str(tmp_path / "both")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
