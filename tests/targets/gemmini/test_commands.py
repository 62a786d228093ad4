"""Encoding and decoding of every command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError, UsageError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import (
    ACCUMULATE,
    ACCUMULATOR,
    FULL,
    GARBAGE,
    Command,
    Pointer,
    local_text,
)


def values(kind: type[Command]) -> st.SearchStrategy[Any]:
    """A command with any bits in its fields."""
    each: dict[str, st.SearchStrategy[Any]] = {}
    for name, place in kind.places().items():
        limit = 1 << place.width
        if place.kind == "f32":
            each[name] = st.floats(width=32, allow_nan=False)
        elif place.kind == "signed":
            each[name] = st.integers(-limit // 2, limit // 2 - 1)
        else:
            each[name] = st.integers(0, limit - 1)
    return st.builds(kind, **each)


@given(st.sampled_from(c.COMMANDS).flatmap(values))
def test_decoding_undoes_encoding(command: Command) -> None:
    encoded = command.encode()
    assert all(0 <= word < 1 << 64 for word in encoded)
    assert c.decode(*encoded) == command
    assert c.decode(*encoded).encode() == encoded


def test_fields_of_a_command_do_not_overlap() -> None:
    for kind in c.COMMANDS:
        used = [3 if kind.SELECTOR is not None else 0, 0]
        for place in kind.places().values():
            mask = (1 << place.width) - 1 << place.low
            assert used[place.operand - 1] & mask == 0, (kind, place)
            used[place.operand - 1] |= mask


def test_every_number_is_there_once() -> None:
    numbers = [(kind.FUNCT, kind.SELECTOR) for kind in c.COMMANDS]
    assert len(set(numbers)) == len(numbers)
    assert {number for number, _ in numbers} == {*range(22), 126}


def test_known_encodings() -> None:
    # As the macros of Gemmini's own header write them.
    assert c.Mvin(0x8000, 32, cols=16, rows=4).encode() == (2, 0x8000, 4 << 48 | 16 << 32 | 32)
    assert c.ConfigLoad(stride=64, id=1, shrunk=1).encode() == (
        0, 0x3F800000 << 32 | 16 << 16 | 1 << 8 | 1 << 3 | 1 << 2 | 1, 64,
    )  # fmt: skip
    assert c.ConfigStore(stride=10, activation=1, scale=0.5).encode() == (
        0, 1 << 2 | 2, 0x3F000000 << 32 | 10,
    )  # fmt: skip
    assert c.Preload(5, 3, 2, ACCUMULATOR | 7, 4, 1).encode() == (
        6, 2 << 48 | 3 << 32 | 5, 1 << 48 | 4 << 32 | 1 << 31 | 7,
    )  # fmt: skip
    assert c.LoopBounds(1, 2, 3, 4, 5, 6).encode() == (
        9, 3 << 32 | 2 << 16 | 1, 6 << 32 | 5 << 16 | 4,
    )  # fmt: skip


def test_text_of_a_command() -> None:
    assert str(c.Mvin(Pointer("x", 16), ACCUMULATOR | 3, 8, 2)) == (
        "mvin dram=x+0x10, local=acc[3], cols=8, rows=2"
    )
    assert local_text(ACCUMULATOR | ACCUMULATE | FULL | 4) == "acc+.i32[4]"
    assert local_text(GARBAGE) == "none"
    assert local_text(9) == "sp[9]"


def test_pointers_get_addresses() -> None:
    command = c.LoopAddressesAB(Pointer("x", 8), Pointer("w"))
    assert command.pointers == {1: Pointer("x", 8), 2: Pointer("w")}
    assert command.bind({"x": 0x1000, "w": 0x2000}) == c.LoopAddressesAB(0x1008, 0x2000)
    with pytest.raises(UsageError, match="no place yet"):
        command.encode()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="2 bits for 'pool_size'"):
        c.ConfigStore(pool_size=4).encode()
    with pytest.raises(UnsupportedError, match="no command with the number 40"):
        c.decode(40, 0, 0)
    assert replace(c.ConfigNorm(), qb=-5).encode().rs2 == (1 << 32) - 5
