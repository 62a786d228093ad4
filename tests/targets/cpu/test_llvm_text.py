"""Text of newer LLVM as older LLVM reads it, with the same values."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.codegen.llvm_text import call_first, for_older_llvm
from fewbit.toolchain.objects import parse_ir


@given(st.integers(0, 2**32 - 1))
def test_every_float_keeps_its_bits(bits: int) -> None:
    text = for_older_llvm(f"@x = global float f0x{bits:08X}")
    double = int(text.rpartition("0x")[2], 16)
    if bits & 0x7F800000 == 0x7F800000:
        assert double >> 63 == bits >> 31
        assert double >> 29 & 0x7FFFFF == bits & 0x7FFFFF
        assert double >> 52 & 0x7FF == 0x7FF
        return
    value = struct.unpack("<d", struct.pack("<Q", double))[0]
    assert struct.pack("<f", value) == struct.pack("<I", bits)


@given(st.integers(0, 2**64 - 1))
def test_every_double_keeps_its_bits(bits: int) -> None:
    assert for_older_llvm(f"double f0x{bits:016X}") == f"double 0x{bits:016X}"


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("float +inf", "float 0x7FF0000000000000"),
        ("float -inf", "float 0xFFF0000000000000"),
        ("double +qnan", "double 0x7FF8000000000000"),
        ("half -inf", "half 0xHFC00"),
        ("bfloat +qnan", "bfloat 0xR7FC0"),
        ("half f0x3C00", "half 0xH3C00"),
        ("bfloat f0x3F80", "bfloat 0xR3F80"),
    ],
)
def test_special_values(newer: str, older: str) -> None:
    assert for_older_llvm(newer) == older
    parse_ir(f"@x = global {older}")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_shortest_decimals_become_exact(value: float) -> None:
    """Newer LLVM writes 0.1 for the float nearest to it, which older LLVM does not take."""
    mantissa, _, exponent = f"{value:.9e}".partition("e")
    text = for_older_llvm(f"@x = global float {mantissa}e{exponent}")
    bits = int(text.rpartition("0x")[2], 16)
    assert struct.pack("<d", value) == struct.pack("<Q", bits)
    parse_ir(text)


def test_names_are_left_alone() -> None:
    text = 'define void @f0xABCDEF12(ptr %x+inf) ; @"a-inf" %-qnan'
    assert for_older_llvm("@f-inf = global i32 0") == "@f-inf = global i32 0"
    assert "%x+inf" in for_older_llvm(text)
    assert '"a-inf"' in for_older_llvm(text)


def test_layers_say_when_they_begin() -> None:
    text = """attributes #0 = { "prefer-vector-width"="32" }
define void @layer(ptr %0, i64 %1) #0 {
  ret void
}
define void @main(ptr %0) {
  call void @layer(ptr %0, i64 1)
  ret void
}
"""
    marked = call_first(text, "say", {"layer": 3})
    assert "@layer(ptr %0, i64 %1) #0 noinline {\n  call void @say(i32 3)\n" in marked
    assert "@main(ptr %0) {\n  call void @layer" in marked
    parse_ir(marked)
