"""Every operation of the builder, with every type: LLVM takes what it writes, or it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    Array,
    Float,
    Int,
    IrTypeError,
    Pointer,
    Struct,
    Type,
    Vector,
    scalar,
    type_of,
)
from fewbit.llvm.values import Value, array, constant, string, structure, symbol
from fewbit.toolchain.objects import parse_ir

SCALARS: Sequence[Int | Float] = [
    *(Int(bits) for bits in (1, 8, 16, 32, 64, 128)),
    *(Float(kind) for kind in ("half", "bfloat", "float", "double")),
]
NUMBERS = st.sampled_from(SCALARS)
VECTORS = st.builds(Vector, st.integers(1, 16), NUMBERS)
TYPES: st.SearchStrategy[Type] = st.one_of(NUMBERS, VECTORS, st.just(PTR))

INTEGER_ONLY: Sequence[Callable[[Value, Value], Value]] = (
    Value.__floordiv__,
    Value.__mod__,
    Value.__and__,
    Value.__or__,
    Value.__xor__,
    Value.shift_left,
    Value.shift_right,
    Value.shift_right_signed,
    Value.signed_quotient,
    Value.signed_remainder,
)
ARITHMETIC = (Value.__add__, Value.__sub__, Value.__mul__)
ORDERS = (Value.__lt__, Value.__le__, Value.__gt__, Value.__ge__)
PREDICATES = (
    *("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
    *("oeq", "one", "olt", "ole", "ogt", "oge", "ord", "ueq", "une", "uno"),
)
CONVERSIONS = (
    *("trunc", "zext", "sext", "fptrunc", "fpext"),
    *("sitofp", "uitofp", "fptosi", "fptoui"),
)


def _verified(f: Function) -> str:
    """Return the text of a finished function, which LLVM takes."""
    if not f.ended:
        f.ret()
    text = "\n".join([*sorted(f.intrinsics), f.text()])
    parse_ir(text)
    return text


def _function(*types: Type, result: Type | str = "void") -> Function:
    return Function("f", [(type, f"p{i}") for i, type in enumerate(types)], result)


@settings(deadline=None, max_examples=200)
@given(TYPES, TYPES, st.sampled_from([*ARITHMETIC, Value.__truediv__, *INTEGER_ONLY, *ORDERS]))
def test_operators(a: Type, b: Type, op: Callable[[Value, Value], Value]) -> None:
    f = _function(a, b)
    kind = scalar(a)
    allowed = a == b and not isinstance(kind, Pointer)
    if op in INTEGER_ONLY:
        allowed = allowed and isinstance(kind, Int)
    if op is Value.__truediv__:
        allowed = allowed and isinstance(kind, Float)
    if not allowed:
        with pytest.raises(IrTypeError):
            op(*f.parameters)
        return
    result = op(*f.parameters)
    text = _verified(f)
    if op in ORDERS:
        assert scalar(result.type) == I1
        assert (" fcmp o" in text) == isinstance(kind, Float)
        assert (" icmp s" in text) == isinstance(kind, Int)
    else:
        assert result.type == a


@settings(deadline=None, max_examples=200)
@given(TYPES, st.sampled_from(PREDICATES))
def test_predicates_belong_to_types(type: Type, predicate: str) -> None:
    f = _function(type, type)
    a, b = f.parameters
    kind = scalar(type)
    is_unsigned_order = predicate in ("ult", "ule", "ugt", "uge")
    of_floats = predicate[0] in "ou" and (is_unsigned_order or len(predicate) == 3)
    of_integers = predicate in PREDICATES[:10]
    allowed = of_floats if isinstance(kind, Float) else of_integers
    if isinstance(kind, Pointer):
        allowed = of_integers and predicate[0] != "s"
    if not allowed:
        with pytest.raises(IrTypeError, match="cannot be compared"):
            a.compare(predicate, b)
        return
    a.compare(predicate, b)
    assert ("fcmp" if isinstance(kind, Float) else "icmp") in _verified(f)


@settings(deadline=None, max_examples=200)
@given(TYPES, NUMBERS, st.sampled_from(CONVERSIONS))
def test_conversions(type: Type, element: Int | Float, how: str) -> None:
    f = _function(type)
    source = scalar(type)
    takes, gives = {
        "trunc": (Int, Int), "zext": (Int, Int), "sext": (Int, Int),
        "fptrunc": (Float, Float), "fpext": (Float, Float),
        "sitofp": (Int, Float), "uitofp": (Int, Float),
        "fptosi": (Float, Int), "fptoui": (Float, Int),
    }[how]  # fmt: skip
    allowed = False
    if isinstance(source, takes) and type_of(element).__class__ is gives:
        more = element.bits - source.bits
        allowed = takes is not gives or (more < 0 if "trunc" in how else more > 0)
    if not allowed:
        with pytest.raises(IrTypeError):
            f.convert(how, f.parameters[0], element)
        return
    f.convert(how, f.parameters[0], element)
    _verified(f)


@settings(deadline=None, max_examples=100)
@given(TYPES, TYPES)
def test_bits_are_as_many(a: Type, b: Type) -> None:
    f = _function(a)
    if isinstance(a, Pointer) or isinstance(b, Pointer) or _bits(a) != _bits(b):
        with pytest.raises(IrTypeError):
            f.bits(f.parameters[0], b)
        return
    f.bits(f.parameters[0], b)
    _verified(f)


def _bits(type: Type) -> int:
    assert isinstance(type, Int | Float | Vector)
    return type.bits


@settings(deadline=None, max_examples=100)
@given(TYPES, TYPES, st.integers(1, 16))
def test_choices(a: Type, b: Type, lanes: int) -> None:
    f = _function(I1, Vector(lanes, I1), a, b)
    one, many, x, y = f.parameters
    for condition in (one, many):
        fits = condition is one or (isinstance(a, Vector) and a.lanes == lanes)
        if a == b and fits:
            f.select(condition, x, y)
        else:
            with pytest.raises(IrTypeError):
                f.select(condition, x, y)
    with pytest.raises(IrTypeError):
        f.select(x if x.type != I1 else many, f.integer(0), 1)
    _verified(f)


@settings(deadline=None, max_examples=100)
@given(TYPES)
def test_memory_and_lanes(type: Type) -> None:
    f = _function(PTR, type)
    pointer, value = f.parameters
    room = f.alloca(type, align=64)
    f.store(value, room)
    f.store(f.load(type, f.at(pointer, 3, type)), f.array(type, 4), 2)
    if isinstance(type, Vector):
        f.insert(value, f.extract(value, type.lanes - 1), 0)
        f.shuffle(value, [*reversed(range(2 * type.lanes))], value)
        with pytest.raises(IrTypeError):
            f.extract(value, type.lanes)
        with pytest.raises(IrTypeError):
            f.shuffle(value, [2 * type.lanes])
    elif not isinstance(type, Pointer):
        f.broadcast_to(value, 8)
        with pytest.raises(IrTypeError):
            f.load("i8", value)
    _verified(f)


@settings(deadline=None, max_examples=100)
@given(NUMBERS, st.integers(-(2**70), 2**70) | st.floats(allow_nan=False))
def test_constants(type: Int | Float, number: float) -> None:
    f = Function("f", "", type)
    fits = isinstance(number, float) == isinstance(type, Float)
    if isinstance(type, Int) and isinstance(number, int):
        fits = -(1 << type.bits - 1) <= number < 1 << type.bits
    if not fits:
        with pytest.raises(IrTypeError):
            f.constant(type, number)
        return
    f.ret(number)
    f.zero(Vector(4, type))
    _verified(f)


def test_types_are_read() -> None:
    for type in (I8, F64, PTR, Vector(16, F32), Array(3, Struct((I32, Vector(2, I8)))), Struct(())):
        assert type_of(str(type)) == type
    for wrong in (
        "i",
        "i0",
        "int",
        "<0 x i8>",
        "<4 x ptr>",
        "<4 i8>",
        "[4 x i8",
        "i8 i8",
        "{ i8",
        "",
    ):
        with pytest.raises(IrTypeError, match="no type"):
            type_of(wrong)


def test_calls_are_checked() -> None:
    callee = Prototype.of("callee", "i32", "ptr", "float")
    f = Function("f", "ptr p, i64 n", "i32")
    p, n = f.parameters
    result = f.call(callee, p, 1.5)
    f.ret(result)
    parse_ir(f"{callee.declaration()}\n{f.text()}")
    g = Function("g", "ptr p, i64 n")
    p, n = g.parameters
    for arguments in ((p,), (p, n), (n, 1.5), (p, 1.5, 2)):
        with pytest.raises(IrTypeError, match="'callee' takes"):
            g.call(callee, *arguments)
    with pytest.raises(IrTypeError, match="no constant of type float"):
        g.call(callee, p, 1)


def test_a_call_in_place_has_the_same_parameters() -> None:
    f = Function("f", "ptr p, i64 n")
    p, n = f.parameters
    with pytest.raises(IrTypeError, match="cannot take the place"):
        f.leave(Prototype.of("other", "void", "ptr"), p)
    f.leave(f.load("ptr", p), p, n + 1)
    assert "musttail" in _verified(f)


def test_intrinsics_are_declared_once_with_their_types() -> None:
    f = _function(F32, F64)
    x, y = f.parameters
    f.intrinsic("fabs.f32", "float", x)
    f.intrinsic("fabs.f32", "float", x)
    with pytest.raises(IrTypeError, match="other types"):
        f.intrinsic("fabs.f32", "double", y)
    assert _verified(f).count("declare") == 1


def test_control_flow() -> None:
    f = Function("f", "ptr to, i64 count, i1 b", "i64")
    to, count, b = f.parameters
    with f.unless(b, rarely=False):
        f.ret(-1)
    with f.when(count > 3):
        f.store(count, to)
    with f.loop(0, count, carried=[f.integer(0)]) as loop:
        loop.carry(loop.carried[0] + loop.index)
    f.ret(loop.results[0])
    _verified(f)
    with pytest.raises(IrTypeError, match="after the end"):
        f.ret(0)


def test_what_loops_carry_keeps_its_type() -> None:
    f = Function("f", "i64 count, float x")
    count, x = f.parameters
    with pytest.raises(IrTypeError), f.loop(0, count, carried=[x]) as loop:
        loop.carry(loop.index)


def test_conditions_and_results_are_checked() -> None:
    f = Function("f", "i64 count", "i32")
    with pytest.raises(IrTypeError, match="no condition"), f.when(f.parameters[0]):
        pass
    with pytest.raises(IrTypeError, match="returns i32"):
        f.ret(f.parameters[0])
    with pytest.raises(IrTypeError, match="goes on"):
        f.text()


def test_a_value_stays_in_its_function() -> None:
    f, other = _function(I64), Function("g", "i64 x")
    with pytest.raises(IrTypeError, match="belongs to"):
        _ = f.parameters[0] + other.parameters[0]


def test_constants_of_modules() -> None:
    names = array([symbol("a.b"), symbol("odd name")])
    row = structure([constant("i64", 3), constant("double", 0.5), string('two "words"\n')])
    for known in (names, row, array([row, row])):
        parse_ir(
            f'@a.b = external global i8\n@"odd name" = external global i8\n@x = constant {known.typed}'
        )
    with pytest.raises(IrTypeError, match="one type"):
        array([constant("i64", 1), constant("i32", 1)])
