"""Functions that a compiler calls for what a core lacks, by the names that it calls them.

They are `runtime/microcontroller.c`, which handles floats as their bits. A name is a short function
in front of one of them, with the types and the order of arguments that the core's ABI says. Arm's
own names (`__aeabi_fadd`) pass floats in integer registers on every core; the others, which are
those of GCC's library, pass them as the core does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fewbit.codegen.llvm_text import with_attributes
from fewbit.codegen.runtime import runtime_ir
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import F32, F64, I32, I64, PTR, VOID, Float, Int, Type
from fewbit.llvm.values import Value
from fewbit.toolchain import objects
from fewbit.toolchain.elf import symbols as symbols_of
from fewbit.toolchain.isa import Isa

PART, IR_FAMILY = "microcontroller", "rv32"
"""The C file, and whose IR it is: all 32-bit cores lay out its arguments alike."""
SMALL = 'minsize optsize "nooutline"'
"""Small code is also the faster one on these cores, but not where pieces of loops become calls."""


@dataclass(frozen=True)
class Helper:
    """A function of the C file, and what its result means to the caller."""

    name: str
    result: Type
    parameters: tuple[Type, ...]
    finish: Callable[[Function, Value], Value] | None = None
    """What becomes of the C function's result, where that is not the result."""

    @property
    def prototype(self) -> Prototype:
        """Return the C function's types: floats are their bits."""
        result = I32 if self.finish else _bits(self.result)
        return Prototype(self.name, result, tuple(map(_bits, self.parameters)))


@dataclass(frozen=True)
class HelperObject:
    """Functions that a program calls, and those that these call."""

    data: bytes
    assembly: str
    names: frozenset[str]


def helper_object(isa: Isa, wanted: set[str]) -> tuple[HelperObject | None, set[str]]:
    """Return an object of the functions of these names, and names that there is none of."""
    wanted, found = set(wanted), None
    while (text := needed_functions(isa, wanted)) is not None:
        module = objects.link_modules([text], wanted, isa)
        objects.optimize(module, isa)
        data, assembly = objects.emit_object(module, isa), objects.emit_assembly(module, isa)
        names = frozenset(each.name for each in symbols_of(data) if each.defined)
        found = HelperObject(data, assembly, names)
        more = missing_symbols(data) - wanted
        if not more:
            break
        wanted |= more
    return found, wanted - (found.names if found else set())


def missing_symbols(data: bytes) -> set[str]:
    """Return the symbols that an object takes from others."""
    names = {each.name for each in symbols_of(data) if not each.defined}
    return {name for name in names if not name.startswith("__aeabi_unwind")}


def needed_functions(isa: Isa, symbols: Iterable[str]) -> str | None:
    """Return LLVM IR of the functions of these names; None where there are none."""
    known = known_helpers(isa)
    functions = [_named(name, known[name]) for name in sorted(set(symbols) & known.keys())]
    if not functions:
        return None
    runtime = with_attributes(runtime_ir(PART, IR_FAMILY), SMALL)
    return "\n".join([runtime, *(f.text() for f in functions)])


def known_helpers(isa: Isa) -> dict[str, Helper]:
    """Return all functions that there are, by the names that the core's compiler calls."""
    return _COMMON | _GCC | (_ARM if isa.triple.startswith("thumb") else {})


def _named(name: str, helper: Helper) -> Function:
    as_bits = name.startswith("__aeabi_")
    types = [_bits(each) if as_bits else each for each in helper.parameters]
    result = _bits(helper.result) if as_bits else helper.result
    parameters = [(each, f"a{i}") for i, each in enumerate(types)]
    f = Function(name, parameters, result, attributes=f'{SMALL} "no-builtins"')
    given = [f.bits(v, _bits(v.type)) if _is_float(v.type) else v for v in f.parameters]
    found = f.call(helper.prototype, *given)
    if helper.finish is not None:
        found = helper.finish(f, found)
    if result == VOID:
        f.ret()
    else:
        f.ret(f.bits(found, result) if _is_float(result) else found)
    return f


def _is_float(type: Type) -> bool:
    return isinstance(type, Float)


def _bits(type: Type) -> Type:
    return Int(type.bits) if isinstance(type, Float) else type


def _compared(predicate: str) -> Callable[[Function, Value], Value]:
    """Return 1 where the order of two floats is this; of no numbers, only where it is `uno`."""

    def finish(f: Function, order: Value) -> Value:
        wanted = {
            "eq": order.equals(0),
            "lt": order.equals(-1),
            "le": order.compare("sle", 0),
            "ge": order.compare("ult", 2),
            "gt": order.equals(1),
            "un": order.equals(2),
        }
        return f.convert("zext", wanted[predicate], I32)

    return finish


def _negative_if_unordered(f: Function, order: Value) -> Value:
    return f.select(order.equals(2), f.constant(I32, -1), order)


def _as_it_is(_: Function, order: Value) -> Value:
    return order


def _unordered(f: Function, order: Value) -> Value:
    return f.convert("zext", order.equals(2), I32)


def _plain(name: str, result: Type, *parameters: Type) -> Helper:
    return Helper(f"fewbit_{name}", result, parameters)


_COMMON = {
    "memcpy": _plain("copy", PTR, PTR, PTR, I32),
    "memmove": _plain("move", PTR, PTR, PTR, I32),
    "memset": _plain("fill", PTR, PTR, I32, I32),
    "roundevenf": _plain("round_float", F32, F32),
    "rintf": _plain("round_float", F32, F32),
    "fmaximumf": _plain("larger", F32, F32, F32),
    "fminimumf": _plain("smaller", F32, F32, F32),
    "fewbit_rounded": _plain("round", I32, F32),
}

_ARM = {
    f"__aeabi_{name}": helper
    for name, helper in {
        **{f"memcpy{n}": _plain("copy", PTR, PTR, PTR, I32) for n in ("", "4", "8")},
        **{f"memmove{n}": _plain("move", PTR, PTR, PTR, I32) for n in ("", "4", "8")},
        **{f"memset{n}": _plain("fill_bytes", VOID, PTR, I32, I32) for n in ("", "4", "8")},
        **{f"memclr{n}": _plain("clear", VOID, PTR, I32) for n in ("", "4", "8")},
        "uidiv": _plain("quotient", I32, I32, I32),
        "idiv": _plain("quotient_signed", I32, I32, I32),
        "uidivmod": _plain("divide", I64, I32, I32),
        "idivmod": _plain("divide_signed", I64, I32, I32),
        "lmul": _plain("multiply", I64, I64, I64),
        "llsl": _plain("shift_left", I64, I64, I32),
        "llsr": _plain("shift_right", I64, I64, I32),
        "lasr": _plain("shift_right_signed", I64, I64, I32),
        "fadd": _plain("add", F32, F32, F32),
        "fsub": _plain("subtract", F32, F32, F32),
        "fmul": _plain("multiply_floats", F32, F32, F32),
        "fdiv": _plain("divide_floats", F32, F32, F32),
        "dadd": _plain("add64", F64, F64, F64),
        "dsub": _plain("subtract64", F64, F64, F64),
        "dmul": _plain("multiply64", F64, F64, F64),
        "ddiv": _plain("divide64", F64, F64, F64),
        **{
            f"{kind}cmp{order}": Helper(f"fewbit_compare{bits}", I32, (t, t), _compared(order))
            for kind, bits, t in (("f", "", F32), ("d", "64", F64))
            for order in ("eq", "lt", "le", "ge", "gt", "un")
        },
        "i2f": _plain("from_signed", F32, I32),
        "ui2f": _plain("from_unsigned", F32, I32),
        "l2f": _plain("from_wide", F32, I64),
        "ul2f": _plain("from_wide_unsigned", F32, I64),
        "f2iz": _plain("to_signed", I32, F32),
        "f2uiz": _plain("to_unsigned", I32, F32),
        "f2d": _plain("widen", F64, F32),
        "d2f": _plain("narrow", F32, F64),
        "i2d": _plain("from_signed64", F64, I32),
        "ui2d": _plain("from_unsigned64", F64, I32),
        "d2iz": _plain("to_signed64", I32, F64),
    }.items()
}

_GCC = {
    f"__{name}": helper
    for name, helper in {
        "udivsi3": _plain("quotient", I32, I32, I32),
        "divsi3": _plain("quotient_signed", I32, I32, I32),
        "umodsi3": _plain("remainder", I32, I32, I32),
        "modsi3": _plain("remainder_signed", I32, I32, I32),
        "muldi3": _plain("multiply", I64, I64, I64),
        "ashldi3": _plain("shift_left", I64, I64, I32),
        "lshrdi3": _plain("shift_right", I64, I64, I32),
        "ashrdi3": _plain("shift_right_signed", I64, I64, I32),
        "addsf3": _plain("add", F32, F32, F32),
        "subsf3": _plain("subtract", F32, F32, F32),
        "mulsf3": _plain("multiply_floats", F32, F32, F32),
        "divsf3": _plain("divide_floats", F32, F32, F32),
        "adddf3": _plain("add64", F64, F64, F64),
        "subdf3": _plain("subtract64", F64, F64, F64),
        "muldf3": _plain("multiply64", F64, F64, F64),
        "divdf3": _plain("divide64", F64, F64, F64),
        **{
            f"{order}{kind}2": Helper(f"fewbit_compare{bits}", I32, (t, t), finish)
            for kind, bits, t in (("sf", "", F32), ("df", "64", F64))
            for order, finish in (
                *((name, _as_it_is) for name in ("eq", "ne", "lt", "le")),
                *((name, _negative_if_unordered) for name in ("ge", "gt")),
                ("unord", _unordered),
            )
        },
        "floatsisf": _plain("from_signed", F32, I32),
        "floatunsisf": _plain("from_unsigned", F32, I32),
        "floatdisf": _plain("from_wide", F32, I64),
        "floatundisf": _plain("from_wide_unsigned", F32, I64),
        "fixsfsi": _plain("to_signed", I32, F32),
        "fixunssfsi": _plain("to_unsigned", I32, F32),
        "extendsfdf2": _plain("widen", F64, F32),
        "truncdfsf2": _plain("narrow", F32, F64),
        "floatsidf": _plain("from_signed64", F64, I32),
        "floatunsidf": _plain("from_unsigned64", F64, I32),
        "fixdfsi": _plain("to_signed64", I32, F64),
        "fixunsdfsi": _plain("to_unsigned64", I32, F64),
    }.items()
}
