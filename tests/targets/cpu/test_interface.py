"""Names and types of the C interface, and what it makes of a number of threads."""

from __future__ import annotations

import ctypes
import keyword
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import binding

from fewbit.codegen.interface import (
    ERRORS,
    Interface,
    Worth,
    c_name,
    error_number,
    interface_ir,
    interface_of,
)
from fewbit.errors import UnsupportedError
from fewbit.program.program import Program
from fewbit.program.signature import Signature, TensorSpec
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.objects import jit_machine, parse_ir


def spec(name: str, *shape: int | None, element: str = "f32") -> TensorSpec:
    return TensorSpec(name, shape, element, np.dtype(np.float32))


@pytest.mark.parametrize(
    ("given_name", "made"),
    [
        ("lenet", "lenet"),
        ("lenet-w8a8", "lenet_w8a8"),
        ("3d", "n3d"),
        ("class", "class_"),
        ("double", "double_"),
        ("_Bool", "Bool"),
        ("a__b", "a_b"),
        ("größe", "gr_e"),
        ("", "model"),
        ("--", "model"),
        ("lambda", "lambda_"),
    ],
)
def test_names(given_name: str, made: str) -> None:
    assert c_name(given_name) == made


@given(st.text())
def test_any_name_becomes_an_identifier(name: str) -> None:
    made = c_name(name)
    assert made.isidentifier()
    assert made.isascii()
    assert not keyword.iskeyword(made)
    assert not made.startswith("_")
    assert c_name(made) == made


@given(
    st.lists(st.tuples(st.sampled_from(["x", "X", "x_dim0", "x_", "y"]), st.booleans()), max_size=6)
)
def test_fields_differ_from_one_another(ports: list[tuple[str, bool]]) -> None:
    specs = tuple(spec(name, None if dynamic else 3) for name, dynamic in ports)
    interface = interface_of(Signature("main", specs[::2], specs[1::2]), "net")
    every = (*interface.inputs, *interface.outputs)
    fields = [field for port in every for field in (port.name, *port.dimensions)]
    assert len({field.upper() for field in fields}) == len(fields)


def test_dynamic_and_static() -> None:
    interface = interface_of(
        Signature("main", (spec("x", None, 4),), (spec("y", 2, 3), spec("z"))), "net"
    )
    assert interface.dynamic
    assert interface.inputs[0].dimensions == ["x_dim0"]
    assert [port.elements for port in (*interface.inputs, *interface.outputs)] == [None, 6, 1]
    assert interface.functions == ("net_arena_bytes", "net_shapes", "net_run")


def test_type_that_c_does_not_have() -> None:
    with pytest.raises(UnsupportedError, match="C has no array for"):
        interface_of(Signature("main", (spec("x", 4, element="i128"),), ()), "net")


def test_errors_are_numbered_from_none() -> None:
    assert error_number("OK") == 0
    assert [error_number(name) for name, _ in ERRORS] == list(range(len(ERRORS)))


def test_name_of_the_entry_may_be_that_of_the_library() -> None:
    """Names inside a library clash with no C identifier."""
    import fewbit

    x = np.arange(3, dtype=np.float32)
    for inner, outer in (("main", "main"), ("net", "net"), ("barrier", "part"), ("part", "memcpy")):
        program = Program.parse(
            f"func.func @{inner}(%x: tensor<3xf32>) -> tensor<3xf32> {{ func.return %x : tensor<3xf32> }}"
        )
        assert np.array_equal(fewbit.compile(program, name=outer)(x), x)


@pytest.mark.parametrize(
    ("worth", "asked", "used"), [(0.4, 8, 1), (1.0, 8, 2), (3.9, 2, 2), (1e9, 64, 64)]
)
def test_threads_that_have_enough_to_do(worth: float, asked: int, used: int) -> None:
    interface = interface_of(Signature("main", (spec("x", 2),), (spec("y", 2),)), "net")
    assert _used(interface, Worth(worth, worth), asked) == (used, used)
    assert _used(interface, Worth(1e9, worth), asked) == (asked, used)


def test_work_grows_with_dimensions() -> None:
    interface = interface_of(Signature("main", (spec("x", None, 2),), (spec("y", 2),)), "net")
    results = [_used(interface, Worth(0.25, 0.05), 8, rows) for rows in (1, 4, 12, 60, 10**9)]
    assert results == [(1, 1), (2, 1), (4, 1), (8, 4), (8, 8)]


def _used(interface: Interface, worth: Worth, asked: int, *dims: int) -> tuple[int, int]:
    """Threads that a run has when it is asked for so many, and those that it waits for."""
    text = interface_ir(interface, "entry", 0, worth)
    (run,) = re.findall(r"^define i32 @net_run\(.*?^}", text, re.MULTILINE | re.DOTALL)
    stand_ins = """
define i32 @threads.run(ptr %inputs, ptr %outputs, ptr %arena, i64 %threads, i64 %sure) {
  %upper = shl i64 %threads, 8
  %both = or i64 %upper, %sure
  %result = trunc i64 %both to i32
  ret i32 %result
}
define i32 @net_shapes(ptr %inputs, ptr %outputs) {
  ret i32 0
}"""
    engine = binding.create_mcjit_compiler(
        parse_ir("\n".join([run, stand_ins])), jit_machine(Isa.host())
    )
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int)(
        engine.get_function_address("net_run")
    )
    memory = np.zeros(256, np.uint8)
    at = memory.ctypes.data + -memory.ctypes.data % 64
    inputs, outputs = np.array([at, *dims], np.uint64), np.array([at], np.uint64)
    return divmod(call(inputs.ctypes.data, outputs.ctypes.data, at, asked), 1 << 8)
