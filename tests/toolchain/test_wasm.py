# pyright: basic
from __future__ import annotations

import pytest

from fewbit.errors import PassError
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.leb128 import read_signed, read_unsigned, signed, unsigned
from fewbit.toolchain.wasm import (
    MissingFunctionsError,
    link_module,
    memory_bytes,
    sections,
    with_data,
)
from fewbit.toolchain.wasm_code import fold_offsets

ISA = Isa("wasm", "wasm32-unknown-unknown", "generic", "", 32, 16, is_static=True, index_bits=32)
GET, CONST, ADD, LOAD, STORE, END = 0x20, 0x41, 0x6A, 0x28, 0x36, 0x0B


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, 65536, (1 << 32) - 1])
def test_numbers_are_read_back(value: int) -> None:
    assert read_unsigned(unsigned(value), 0) == (value, len(unsigned(value)))
    for number in (value, -value):
        assert read_signed(signed(number), 0) == (number, len(signed(number)))


def _module(text: str, *exports: str) -> bytes:
    module = objects.link_modules([text], exports, ISA)
    objects.optimize(module, ISA)
    data = objects.emit_object(module, ISA)
    return link_module([data], exports, stack_bytes=4096, data_from=70000)


ANSWER = "define i32 @answer() {\n  ret i32 42\n}\n"


def test_data_become_a_segment() -> None:
    module = _module(ANSWER, "answer")
    assert memory_bytes(module) >= 70000
    added = with_data(module, 5000, b"weights")
    (segment,) = [content for kind, content in sections(added) if kind == 11]
    assert segment == b"\1\0\x41" + signed(5000) + b"\x0b\7weights"
    again = with_data(added, 6000, b"more")
    (segment,) = [content for kind, content in sections(again) if kind == 11]
    assert segment[0] == 2
    assert b"more" in segment
    assert b"weights" in segment
    assert with_data(module, 5000, b"") == module


def test_missing_functions_are_named() -> None:
    text = (
        "declare i32 @other()\ndefine i32 @answer() {\n  %x = call i32 @other()\n  ret i32 %x\n}\n"
    )
    with pytest.raises(MissingFunctionsError, match="calls other, which nothing defines") as e:
        _module(text, "answer")
    assert e.value.names == ("other",)


def test_no_module_is_refused() -> None:
    with pytest.raises(PassError, match="no WebAssembly module"):
        list(sections(b"\x7fELF"))


def test_constants_become_offsets() -> None:
    before = bytes([GET, 0, CONST, 8, ADD, LOAD, 2, 4, END])
    assert fold_offsets(before) == bytes([GET, 0, LOAD, 2, 12, END])


def test_offsets_of_vectors() -> None:
    splat = bytes([0xFD, 0x09, 0, 0])
    assert fold_offsets(bytes([CONST, *signed(200), ADD, *splat])) == bytes(
        [0xFD, 0x09, 0, *unsigned(200)]
    )


@pytest.mark.parametrize(
    "code",
    [
        bytes([GET, 0, CONST, 0x78, ADD, LOAD, 2, 4, END]),  # -8
        bytes([GET, 0, CONST, 8, GET, 1, ADD, LOAD, 2, 4, END]),
        bytes([GET, 0, CONST, 8, ADD, STORE, 2, 4, END]),
        bytes([CONST, 8, ADD, GET, 0, LOAD, 2, 0, END]),
        bytes([0x43, CONST, 8, ADD, LOAD, END]),  # a float of these bytes
        bytes([0xFD, 0x0C, *[CONST, 8, ADD, LOAD] * 4, END]),  # a vector of these bytes
        bytes([0xFD, 0x0D, *[CONST, 8, ADD, LOAD] * 4, 0xFD, 0x15, CONST, END]),
        bytes([0xFC, 0x0A, 0, 0, 0x0E, 1, 0, 1, 0x44, *[CONST, 8, ADD, LOAD] * 2, END]),
    ],
)
def test_other_code_stays(code: bytes) -> None:
    assert fold_offsets(code) == code


def test_unknown_instructions_are_refused() -> None:
    with pytest.raises(PassError, match="0xff"):
        fold_offsets(bytes([0xFF]))
