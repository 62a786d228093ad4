"""What a program that boots does: one run, the cycles of each layer, and whether results agree.

Integers must be what was expected. Floats lie between bounds around it, which are found here, so
that the program compares integers alone: the bits of floats, in an order that is that of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.codegen.bare_metal.device_calls import MARK
from fewbit.codegen.bare_metal.interface import fields
from fewbit.codegen.boot.embedded import Embedded
from fewbit.codegen.boot.module import BootModule
from fewbit.codegen.boot.printing import add_printing
from fewbit.codegen.interface import Port
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32, I64, PTR, VOID, Int
from fewbit.llvm.values import Value, symbol
from fewbit.targets.bare_metal.board import Board
from fewbit.targets.bare_metal.console import add_console
from fewbit.targets.bare_metal.start import CYCLES, REPORT_TRAP

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-5
"""How far floats may be from what is expected, relative to the largest."""
WRAPPED, REAL = f"__wrap_{MARK}", f"__real_{MARK}"
"""What a linker makes of calls of a function, and of the function, where it is wrapped."""
TRAPPED = 2
"""The exit status of a program with a trap; 1 is that of one whose results are others."""
_READ_CYCLES = Prototype(CYCLES, I64, ())


@dataclass(frozen=True)
class Run:
    """The program that is started, and what it runs on."""

    ports: Sequence[Port]
    embedded: Embedded
    shapes: Sequence[tuple[int, ...]]
    """The shapes of all ports."""
    layers: Sequence[str]
    """The layer of each number that a function of the program says when it begins."""


def program_ir(xlen: int, board: Board, run: Run) -> str:
    """Return LLVM IR of `main` and of what it calls, and of what traps call."""
    m = BootModule(Int(xlen))
    add_console(m, board, xlen)
    add_printing(m, decimal=I64, hexadecimal=m.index)
    _add_trap(m)
    names = list(dict.fromkeys(run.layers))
    _add_clock(m, run.layers, names)
    _add_main(m, run, names)
    return m.text


def _say(m: BootModule, f: Function, text: str) -> None:
    f.call(m.find("put_text"), f.symbol(m.text_constant(text)))


def _add_trap(m: BootModule) -> None:
    word = m.index
    f = m.function(REPORT_TRAP, f"{word} cause, {word} at, {word} value", str(word))
    for what, value in zip(("trap ", "at ", "with "), f.parameters, strict=True):
        _say(m, f, what)
        f.call(m.find("put_hexadecimal"), value)
    f.ret(TRAPPED)


def _add_clock(m: BootModule, layers: Sequence[str], names: Sequence[str]) -> None:
    """Add what takes the cycles since the layer before began, where one begins."""
    m.lines += [
        _READ_CYCLES.declaration(),
        f"declare void {symbol(REAL)}(i32)",
        f"@cycles = internal global [{len(names) + 1} x i64] zeroinitializer, align 8",
        "@latest = internal global i32 0, align 4",
        "@began = internal global i64 0, align 8",
    ]
    places = np.array([names.index(layer) + 1 for layer in layers], np.int32)
    m.data("layer.places", places if len(places) else np.zeros(1, np.int32))
    charge = m.function("charge", "")
    latest = charge.convert("zext", charge.load(I32, charge.symbol("latest")), I64)
    place = charge.at(charge.symbol("cycles"), latest, I64)
    spent = charge.call(_READ_CYCLES) - charge.load(I64, charge.symbol("began"))
    charge.store(charge.load(I64, place) + spent, place)
    charge.ret()
    wrap = m.function(WRAPPED, "i32 number")
    (number,) = wrap.parameters
    wrap.call(charge)
    wide = wrap.convert("zext", number, I64)
    wrap.store(wrap.load(I32, wrap.symbol("layer.places"), wide), wrap.symbol("latest"))
    wrap.call(Prototype(REAL, VOID, (I32,)), number)
    wrap.store(wrap.call(_READ_CYCLES), wrap.symbol("began"))
    wrap.ret()


def _add_main(m: BootModule, run: Run, names: Sequence[str]) -> None:
    _add_ports(m, run)
    m.room("arena", run.embedded.arena_bytes)
    prototype = Prototype("run", VOID, (PTR, PTR))
    m.lines.append(prototype.declaration())
    f = m.function("main", "", str(m.index))
    start = f.call(_READ_CYCLES)
    f.store(start, f.symbol("began"))
    f.call(prototype, f.symbol("ports"), f.symbol("arena"))
    f.call(m.find("charge"))
    spent = f.call(_READ_CYCLES) - start
    _say(m, f, "cycles ")
    f.call(m.find("put_decimal"), spent)
    for number, name in enumerate(("(before layers)", *names)):
        _say(m, f, f"layer {name} ")
        f.call(m.find("put_decimal"), f.load(I64, f.symbol("cycles"), number))
    equal, agreeing, total = _compare(m, f, run.embedded)
    for what, count in (("equal ", equal), ("agreeing ", agreeing), ("of ", total)):
        _say(m, f, what)
        f.call(m.find("put_decimal"), count)
    f.ret(f.select(agreeing.equals(total), f.integer(0), f.integer(1)))


def _add_ports(m: BootModule, run: Run) -> None:
    """Add the table that `run` takes: addresses, and the dimensions that only a run knows."""
    embedded = run.embedded
    for i, array in enumerate(embedded.inputs):
        m.data(f"input.{i}", array, align=64)
    for i, (count, size) in enumerate(embedded.outputs):
        m.room(f"output.{i}", count * size)
    places = fields(run.ports)
    inputs = len(embedded.inputs)
    words: dict[int, str] = {}
    for number, (port, shape) in enumerate(zip(run.ports, run.shapes, strict=True)):
        place, dimensions = places[port.name]
        kind = f"input.{number}" if number < inputs else f"output.{number - inputs}"
        words[place] = f"ptr @{kind}"
        for at, axis in zip(dimensions, port.dynamic_axes, strict=True):
            words[at] = f"ptr inttoptr ({m.index} {shape[axis]} to ptr)"
    table = ", ".join(words[place] for place in sorted(words))
    m.lines.append(f"@ports = internal constant [{len(words)} x ptr] [{table}], align 8")


def _compare(m: BootModule, f: Function, embedded: Embedded) -> tuple[Value, Value, Value]:
    """Count elements that are what was expected, those that are near enough, and all."""
    assert embedded.expected is not None
    equal = agreeing = f.constant(I64, 0)
    total = 0
    for i, array in enumerate(embedded.expected):
        low, high = bounds(array)
        for name, bound in (("expected", in_order(array)), ("low", low), ("high", high)):
            m.data(f"{name}.{i}", bound)
        type = Int(8 * array.itemsize)
        total += array.size
        with f.loop(0, array.size, carried=[equal, agreeing]) as loop:
            given = f.load(type, f.symbol(f"output.{i}"), loop.index)
            if array.dtype.kind in "fV":
                given = _ordered(f, given, type)
            wanted, least, most = (
                f.load(type, f.symbol(f"{name}.{i}"), loop.index)
                for name in ("expected", "low", "high")
            )
            is_near = given.compare("sge", least) & given.compare("sle", most)
            both = zip(loop.carried, (given.equals(wanted), is_near), strict=True)
            loop.carry(*(count + f.convert("zext", more, I64) for count, more in both))
        equal, agreeing = loop.results
    return equal, agreeing, f.constant(I64, total)


def _ordered(f: Function, bits: Value, type: Int) -> Value:
    """Return the bits of a float as an integer that is greater where the float is."""
    magnitude = (1 << type.bits - 1) - 1
    sign = bits.shift_right_signed(f.constant(type, type.bits - 1))
    return bits ^ (sign & f.constant(type, magnitude))


def in_order(array: Array) -> Array:
    """Return integers as they are, and floats as integers that are greater where these are."""
    if array.dtype.kind not in "fV":
        return array
    bits = np.ascontiguousarray(array).view(f"<i{array.itemsize}")
    magnitude = np.array((1 << 8 * array.itemsize - 1) - 1, bits.dtype)
    return np.where(bits < 0, bits ^ magnitude, bits)


def bounds(array: Array) -> tuple[Array, Array]:
    """Return the least and the greatest that are taken for each element, in order."""
    exact = in_order(array)
    if array.dtype.kind not in "fV" or not array.size:
        return exact, exact
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    room = TOLERANCE * np.max(np.abs(wide), initial=0.0, where=finite)
    low, high = (in_order((wide + way * room).astype(array.dtype)) for way in (-1, 1))
    return np.where(finite, low, exact), np.where(finite, high, exact)


def read_report(printed: str) -> Mapping[str, int]:
    """Return what a program printed: `cycles`, `layer NAME`, `equal`, `agreeing`, `of`."""
    report: dict[str, int] = {}
    for line in printed.splitlines():
        name, _, number = line.rpartition(" ")
        if name and number.isdigit():
            report[name] = int(number)
    return report
