"""Shared libraries without a C compiler."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from fewbit.errors import UnsupportedError
from fewbit.toolchain import objects
from fewbit.toolchain.elf import section
from fewbit.toolchain.isa import Isa, names
from fewbit.toolchain.link import link_shared
from fewbit.toolchain.system import LINUX

CALLS = """
declare double @exp(double)
declare i32 @sched_yield()
define double @net_exp(double %x) { %r = call double @sched_yield_then(double %x) ret double %r }
define internal double @sched_yield_then(double %x) {
  %n = call i32 @sched_yield()
  %r = call double @exp(double %x)
  ret double %r
}
"""


def compiled(text: str, isa: Isa, *public: str) -> bytes:
    return objects.emit_object(objects.link_modules([text], public, isa), isa)


def test_library_finds_what_it_calls(tmp_path: Path) -> None:
    isa = Isa.host()
    path = tmp_path / "libnet.so"
    path.write_bytes(link_shared([compiled(CALLS, isa, "net_exp")], "libnet.so", isa))
    library = ctypes.CDLL(str(path))
    library.net_exp.restype = ctypes.c_double
    library.net_exp.argtypes = [ctypes.c_double]
    assert library.net_exp(0.0) == 1.0
    assert not hasattr(library, "sched_yield_then")


@pytest.mark.parametrize("name", names())
def test_every_processor_has_a_library(name: str) -> None:
    isa = Isa.of(name)
    weights = objects.weights_object("net_weights", b"weights", isa)
    library = link_shared([compiled(CALLS, isa, "net_exp"), weights], "libnet.so", isa)
    strings = section(library, ".dynstr")
    found = library[strings.offset : strings.offset + strings.size].split(b"\0")
    assert {b"libnet.so", b"libm.so.6", b"libc.so.6", b"exp", b"net_exp"} <= set(found)
    assert b"net_weights" not in found


def test_same_inputs_give_the_same_library() -> None:
    isa = Isa.of("riscv64")
    made = [link_shared([compiled(CALLS, isa, "net_exp")], "libnet.so", isa) for _ in range(2)]
    assert made[0] == made[1]


def test_unknown_function_is_named() -> None:
    isa = Isa.of("aarch64")
    text = "declare void @elsewhere()\ndefine void @f() { call void @elsewhere() ret void }"
    with pytest.raises(UnsupportedError, match="calls 'elsewhere'"):
        link_shared([compiled(text, isa, "f")], "libf.so", isa)
    library = link_shared([compiled(text, isa, "f")], "libf.so", isa, {"else": "libelse.so.1"})
    assert b"libelse.so.1\0" in library


@pytest.mark.parametrize("soname", LINUX.libraries)
def test_libraries_have_what_we_take_from_them(soname: str) -> None:
    """An older system than the one that we link for may lack newer functions."""
    try:
        library = ctypes.CDLL(soname)
    except OSError:
        pytest.skip(f"there is no {soname} here")
    newer = {"fmaximum", "fmaximumf", "fminimum", "fminimumf"}
    assert [name for name in LINUX.libraries[soname] - newer if not hasattr(library, name)] == []
