"""Sections and symbols of objects, for every processor."""

from __future__ import annotations

import pytest

from fewbit.errors import Error
from fewbit.toolchain.elf import Symbol, section, sections, symbols
from fewbit.toolchain.isa import Isa, names
from fewbit.toolchain.objects import emit_object, parse_ir

TEXT = """
@table = hidden constant [16 x i8] c"0123456789abcdef", section ".rodata.table", align 16
@here = internal global i32 3
declare void @elsewhere(ptr)
define void @seen() { call void @elsewhere(ptr @here) ret void }
define weak void @weak() { ret void }
"""


@pytest.mark.parametrize("name", names())
def test_symbols_and_sections(name: str) -> None:
    isa = Isa.of(name)
    module = parse_ir(TEXT)
    module.triple = isa.triple
    made = emit_object(module, isa)
    results = {s.name: s for s in symbols(made) if not s.name.startswith((".", "_GLOBAL_"))}
    assert results == {
        "table": Symbol("table", defined=True, hidden=True),
        "elsewhere": Symbol("elsewhere", defined=False, hidden=False),
        "seen": Symbol("seen", defined=True, hidden=False),
        "weak": Symbol("weak", defined=True, hidden=False),
    }
    place = section(made, ".rodata.table")
    assert made[place.offset : place.offset + place.size] == b"0123456789abcdef"
    assert ".symtab" in {s.name for s in sections(made)}


def test_missing_section_is_an_error() -> None:
    isa = Isa.of("aarch64")
    module = parse_ir("define void @f() { ret void }")
    module.triple = isa.triple
    with pytest.raises(Error, match=r"no section \.nothing"):
        section(emit_object(module, isa), ".nothing")
