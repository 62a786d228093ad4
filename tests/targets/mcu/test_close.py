"""What a library brings along is its own: other objects of a program have the same names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fewbit.program.program import Program
from fewbit.targets.mcu.core import CORES
from fewbit.toolchain import objects
from fewbit.toolchain.archive import read_archive
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.elf_edit import rename_symbols, take_floats_either_way
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link import link_executable
from tests.targets.mcu.emulated import compile_for
from tests.targets.mcu.test_target import SMALL

CALLS = """
declare i32 @other(i32)
define i32 @mine(i32 %x) { %r = call i32 @other(i32 %x) ret i32 %r }
"""
OTHER = "define i32 @other(i32 %x) { %r = add i32 %x, 2 ret i32 %r }"


def compiled(text: str, isa: Isa, *public: str) -> bytes:
    return objects.emit_object(objects.link_modules([text], public, isa), isa)


@pytest.mark.parametrize("isa", [Isa.of("x86-64-v2"), CORES["rv32imc"].isa, CORES["cortex-m4"].isa])
def test_renamed_symbols_find_each_other(isa: Isa) -> None:
    caller, callee = compiled(CALLS, isa, "mine"), compiled(OTHER, isa, "other")
    names = {"other": "net.other.of.a.longer.name", "absent": "no"}
    changed = [rename_symbols(each, names) for each in (caller, callee)]
    found = [{(s.name, s.defined) for s in symbols(each)} for each in changed]
    assert ("net.other.of.a.longer.name", False) in found[0]
    assert ("mine", True) in found[0]
    assert ("net.other.of.a.longer.name", True) in found[1]
    # What was defined under the old name is another function.
    stranger = compiled(OTHER.replace("2", "3"), isa, "other")
    link_executable([*changed, stranger], ["mine"])


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
def test_nothing_but_the_run_has_a_common_name(core: str, tmp_path: Path) -> None:
    compile_for(Program.parse(SMALL), core, tmp_path / "net")
    members = read_archive((tmp_path / "net" / "libnet.a").read_bytes())
    defined = {s.name for m in members for s in symbols(m.data) if s.defined}
    assert {name for name in defined if not name.startswith("net.")} == {"net_run", "net_weights"}


@pytest.mark.skipif(shutil.which("arm-none-eabi-readelf") is None, reason="there is no readelf")
def test_mark_is_what_tools_read(tmp_path: Path) -> None:
    isa = CORES["cortex-m4"].isa
    data = take_floats_either_way(compiled(OTHER, isa, "other"))
    path = tmp_path / "x.o"
    path.write_bytes(data)
    words = ["arm-none-eabi-readelf", "-A", str(path)]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "Tag_ABI_VFP_args: compatible" in told.stdout
    assert not told.stderr


def test_other_processors_have_no_such_mark() -> None:
    data = compiled(OTHER, Isa.of("x86-64-v2"), "other")
    assert take_floats_either_way(data) == data
