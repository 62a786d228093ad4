"""Floats in integers are IEEE 754's: each helper against numpy, on the simulator of RISC-V."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fewbit.codegen.bare_metal.helpers import known_helpers, needed_functions
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.mcu.core import CORES
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link import link_executable

CORE = CORES["rv32imc"]
NAMES = [name for name in known_helpers(CORE.isa) if not name.startswith("mem")]
SINGLES = [
    0.0, -0.0, 1.0, -1.0, 1.5, 2.5, 3.5, -2.5, 0.1, 1e-45, -3e-39, 1.1754942e-38, 3.4e38, -3.4e38,
    float("inf"), float("-inf"), float("nan"), 16777217.0, 8388607.5, 0.49999997, 127.5, -128.5,
    2147483648.0, 5e9, 1.0000001, 0.99999994, 7e-20, 3.3e19,
]  # fmt: skip
DOUBLES = [*SINGLES, 5e-324, 1e300, -1e-300, 1.7976931348623157e308, 2.0**53 + 1, 1 / 3, 1e-40]


@pytest.fixture(scope="module")
def machine() -> Machine:
    # Without compressed instructions, which the simulator has not.
    isa = Isa("rv32", "riscv32-unknown-none-elf", "generic-rv32", "+m", 32, 32, index_bits=32,
              is_static=True)  # fmt: skip
    text = needed_functions(CORE.isa, NAMES)
    assert text is not None
    module = objects.link_modules([text], NAMES, isa)
    objects.optimize(module, isa)
    made = Machine(32, 1 << 20)
    made.load(link_executable([objects.emit_object(module, isa)], NAMES))
    return made


def call(machine: Machine, name: str, values: Sequence[Any], types: str) -> list[int]:
    """Call a function with floats ("f"), doubles ("d"), integers ("i", "q") in registers."""
    words: list[int] = []
    for value, type in zip(values, types, strict=True):
        raw = struct.pack(f"<{type}", value)
        words += struct.unpack(f"<{len(raw) // 4}I", raw)
    low = machine.call(name, *words).result & 0xFFFFFFFF
    return [low, machine.state.registers[11] & 0xFFFFFFFF]


def read(words: list[int], type: str) -> Any:
    if type == "f":
        return np.array(words[:1], np.uint32).view(np.float32)[0]
    if type == "d":
        return np.array(words, np.uint32).view(np.float64)[0]
    return np.array(words[:1], np.uint32).view(np.int32)[0]


def is_same(a: Any, b: Any) -> bool:
    if np.isnan(a) or np.isnan(b):
        return bool(np.isnan(a) and np.isnan(b))
    return bool(a == b and np.signbit(a) == np.signbit(b))


def pairs(values: list[float], dtype: type) -> list[tuple[float, float]]:
    random = np.random.default_rng(0)
    bits = np.uint32 if dtype is np.float32 else np.uint64
    words = random.integers(0, np.iinfo(bits).max, (200, 2), dtype=bits).view(dtype)
    near = (random.standard_normal((200, 2)) * 8).astype(dtype)
    chosen = [(a, b) for a in values for b in values[::3]]
    return [*chosen, *map(tuple, words.tolist()), *map(tuple, near.tolist())]


OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ["sf", "df"])
def test_arithmetic(machine: Machine, operation: str, kind: str) -> None:
    dtype, type, values = (np.float32, "f", SINGLES) if kind == "sf" else (np.float64, "d", DOUBLES)
    with np.errstate(all="ignore"):
        for a, b in pairs(values, dtype):
            a, b = dtype(a), dtype(b)
            found = read(call(machine, f"__{operation}{kind}3", (a, b), type * 2), type)
            assert is_same(found, OPERATIONS[operation](a, b)), (a, b, found)


@pytest.mark.parametrize("kind", ["sf", "df"])
def test_comparisons(machine: Machine, kind: str) -> None:
    dtype, type, values = (np.float32, "f", SINGLES) if kind == "sf" else (np.float64, "d", DOUBLES)
    for a, b in pairs(values, dtype)[::2]:
        a, b = dtype(a), dtype(b)
        holds = {
            name: int(read(call(machine, f"__{name}{kind}2", (a, b), type * 2), "i"))
            for name in ("eq", "lt", "le", "gt", "ge", "unord")
        }
        assert (holds["eq"] == 0) == (a == b)
        assert (holds["lt"] < 0) == (a < b)
        assert (holds["le"] <= 0) == (a <= b)
        assert (holds["gt"] > 0) == (a > b)
        assert (holds["ge"] >= 0) == (a >= b)
        assert (holds["unord"] != 0) == (np.isnan(a) or np.isnan(b))


def test_rounding(machine: Machine) -> None:
    random = np.random.default_rng(1)
    values = [*SINGLES, *(random.standard_normal(300) * 100).tolist(), *np.arange(-9, 9, 0.5)]
    for value in map(np.float32, values):
        found = read(call(machine, "roundevenf", (value,), "f"), "f")
        assert is_same(found, np.rint(value)), value
        if abs(value) < 2**31:
            whole = read(call(machine, "fewbit_rounded", (value,), "f"), "i")
            assert whole == int(np.rint(value)), value


def test_conversions(machine: Machine) -> None:
    random = np.random.default_rng(2)
    integers = [0, 1, -1, 2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31)]
    integers += random.integers(-(2**31), 2**31 - 1, 200).tolist()
    for i in integers:
        assert read(call(machine, "__floatsisf", (i,), "i"), "f") == np.float32(i)
        assert read(call(machine, "__floatsidf", (i,), "i"), "d") == np.float64(i)
        wide = i << 31 | 12345
        (expected,) = np.array([wide], np.int64).astype(np.float32)
        assert read(call(machine, "__floatdisf", (wide,), "q"), "f") == expected, wide
    for value in map(np.float32, SINGLES):
        assert is_same(read(call(machine, "__extendsfdf2", (value,), "f"), "d"), np.float64(value))
        if abs(value) < 2**31:
            assert read(call(machine, "__fixsfsi", (value,), "f"), "i") == int(value)
    with np.errstate(all="ignore"):
        for value in map(np.float64, [*DOUBLES, *(random.standard_normal(200) * 1e-39).tolist()]):
            narrow = read(call(machine, "__truncdfsf2", (value,), "d"), "f")
            assert is_same(narrow, np.float32(value)), value


def test_integers(machine: Machine) -> None:
    random = np.random.default_rng(3)
    for a, b in random.integers(-(2**31), 2**31 - 1, (100, 2)).tolist():
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert read(call(machine, "__divsi3", (a, b), "ii"), "i") == quotient
        assert read(call(machine, "__modsi3", (a, b), "ii"), "i") == a - b * quotient
        wide = a * 2**20 + b
        product = call(machine, "__muldi3", (wide, b), "qq")
        assert product == list(struct.unpack("<II", struct.pack("<Q", wide * b % 2**64)))
        for shift in (0, 1, 31, 32, 33, 63):
            for name, expected in (
                ("ashl", wide << shift), ("ashr", wide >> shift), ("lshr", wide % 2**64 >> shift)
            ):  # fmt: skip
                found = call(machine, f"__{name}di3", (wide, shift), "qi")
                assert found == list(struct.unpack("<II", struct.pack("<Q", expected % 2**64)))
