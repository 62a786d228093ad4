"""Objects of code and of weights."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fewbit.errors import PassError
from fewbit.toolchain.elf import section, symbols
from fewbit.toolchain.isa import Isa, names
from fewbit.toolchain.objects import (
    SECTION,
    emit_assembly,
    emit_object,
    link_modules,
    optimize,
    parse_ir,
    weights_object,
)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("image", [b"", b"x", bytes(range(256)) * 40])
def test_weights_are_in_their_section(name: str, image: bytes) -> None:
    made = weights_object("net_weights", image, Isa.of(name))
    place = section(made, SECTION)
    assert made[place.offset : place.offset + len(image)] == image
    assert place.size == max(len(image), 1)
    assert place.offset % 64 == 0
    (symbol,) = [s for s in symbols(made) if s.name == "net_weights"]
    assert symbol.defined
    assert symbol.hidden


def test_only_public_functions_are_seen() -> None:
    isa = Isa.of("x86-64-v3")
    module = link_modules(
        [
            "define i32 @inner(i32 %x) { %y = mul i32 %x, 3 ret i32 %y }",
            "declare i32 @inner(i32)\ndefine i32 @outer() { %r = call i32 @inner(i32 2) ret i32 %r }",
        ],
        ["outer"],
        isa,
    )
    optimize(module, isa)
    assert {s.name for s in symbols(emit_object(module, isa))} == {"outer"}
    assert "movl\t$6, %eax" in emit_assembly(module, isa)


def test_what_llvm_does_not_take_is_reported() -> None:
    with pytest.raises(PassError, match=r"LLVM does not take the program.*expected"):
        parse_ir("define void @f( { ret void }")


GARBAGE = """
import gc
from llvmlite import binding
from fewbit.toolchain.objects import parse_ir
gc.disable()
for _ in range(200):
    context = binding.create_context()
    module = parse_ir("define i32 @f() { ret i32 1 }", context)
    first, second = [context], [module]
    first += [first, second]
    second += [second, first]
    del context, module, first, second
    gc.collect()
"""
"""Python ends contexts before their modules here."""


def test_contexts_and_modules_end_in_any_order() -> None:
    subprocess.run([sys.executable, "-c", GARBAGE], check=True, timeout=120)
