"""What libraries bring along where a system has nothing of the kind."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fewbit.codegen.runtime import runtime_ir
from fewbit.codegen.support import support_object
from fewbit.toolchain import objects
from fewbit.toolchain.coff import symbols
from fewbit.toolchain.isa import Isa, host_architecture
from fewbit.toolchain.link import link_shared

CALLS = """
define i32 @extend(i16 %x) {
  %half = bitcast i16 %x to half
  %float = call float @__extendhfsf2(half %half)
  %bits = bitcast float %float to i32
  ret i32 %bits
}
define i16 @cut(i32 %x) {
  %float = bitcast i32 %x to float
  %half = call half @__truncsfhf2(float %float)
  %bits = bitcast half %half to i16
  ret i16 %bits
}
define i16 @cut_wide(i64 %x) {
  %double = bitcast i64 %x to double
  %half = call half @__truncdfhf2(double %double)
  %bits = bitcast half %half to i16
  ret i16 %bits
}
declare float @__extendhfsf2(half)
declare half @__truncsfhf2(float)
declare half @__truncdfhf2(double)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if host_architecture() != "x86_64":
        pytest.skip("this machine is no x86")
    isa = Isa.of("x86-64-v2")
    public = ["extend", "cut", "cut_wide"]
    module = objects.link_modules([CALLS, runtime_ir("half", "x86_64")], public, isa)
    path = tmp_path_factory.mktemp("half") / "libhalf.so"
    path.write_bytes(link_shared([objects.emit_object(module, isa)], "libhalf.so", isa))
    return ctypes.CDLL(str(path))


def test_every_half_is_extended_as_numpy_does(library: ctypes.CDLL) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    library.extend.restype = ctypes.c_uint32
    got = np.array([library.extend(int(x)) for x in every], np.uint32).view(np.float32)
    wanted = every.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, wanted)
    assert (np.signbit(got) == np.signbit(wanted)).all()


def interesting() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Halves, what lies halfway between neighbours, what is beside that, and others."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    between = (halves[:-1] + halves[1:]) / 2
    random = np.random.default_rng(0).standard_normal(2000)
    spread = random * 2.0 ** np.arange(-40, 40).repeat(25)
    some = np.concatenate([halves[::7], between[::5], spread, [65504, 65519.99, 65520, 1e300, 0.0]])
    beside = [np.nextafter(some, np.inf), np.nextafter(some, -np.inf)]
    whole = np.concatenate([some, *beside])
    return np.concatenate([whole, -whole, [np.inf, -np.inf, np.nan]])


def test_wide_floats_are_cut_as_numpy_does(library: ctypes.CDLL) -> None:
    values = interesting()
    with np.errstate(over="ignore"):
        singles = values.astype(np.float32)
        for function, given in ((library.cut, singles), (library.cut_wide, values)):
            bits = given.view(np.uint32 if given.dtype == np.float32 else np.uint64)
            kind = ctypes.c_uint32 if given.dtype == np.float32 else ctypes.c_uint64
            function.restype, function.argtypes = ctypes.c_uint16, [kind]
            got = np.array([function(int(each)) for each in bits], np.uint16).view(np.float16)
            np.testing.assert_array_equal(got, given.astype(np.float16))
            assert (np.signbit(got) == np.signbit(given)).all()


def test_only_what_is_lacking_is_brought_along() -> None:
    isa = Isa.of("x86-64-windows")
    text = "define float @f(float %x, half %y) { %z = fpext half %y to float %r = fadd float %x, %z ret float %r }"  # fmt: skip
    data = objects.emit_object(objects.link_modules([text], ["f"], isa), isa)
    found = support_object([data], isa)
    assert found is not None
    assert set(found[1]) == {"_fltused", "__extendhfsf2"}
    assert {each.name for each in symbols(found[0]) if each.defined} >= set(found[1])
    plain = "define i32 @f(i32 %x) { ret i32 %x }"
    data = objects.emit_object(objects.link_modules([plain], ["f"], isa), isa)
    assert support_object([data], isa) is None
    linux = Isa.of("x86-64-v2")
    data = objects.emit_object(objects.link_modules([text], ["f"], linux), linux)
    assert support_object([data], linux) is None
