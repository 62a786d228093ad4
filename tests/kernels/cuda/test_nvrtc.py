"""CUDA C++ to machine code, and what the assembler says of it."""

from __future__ import annotations

import pytest

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.arch import ARCHS, HOPPER, Arch
from fewbit.kernels.cuda.nvrtc import Resources, compile_source, parse_resources, source
from tests.kernels.cuda.compiling import needs_nvrtc

LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
    0 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 1024 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Used 8 registers, used 0 barriers
"""


def test_resources_are_read_from_the_assembler() -> None:
    assert parse_resources(LOG) == {
        "first": Resources(168, 1024, 12),
        "second": Resources(8, 0, 0),
    }


def test_macros_come_before_the_files() -> None:
    text = source("prelude.cu", ELEMENT_I8=1, BN="64")
    assert text.startswith("#define ELEMENT_I8 1\n#define BN 64\n")
    assert "typedef i8 element;" in text


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_every_generation_has_machine_code(arch: Arch) -> None:
    compiled = compile_source('extern "C" __global__ void add(float* x) { *x += 1; }', arch)
    assert compiled.image.startswith(b"\x7fELF")
    assert compiled.resources["add"].spilled == 0
    assert compiled.resources["add"].registers > 0


@needs_nvrtc
def test_mistakes_are_shown_with_their_lines() -> None:
    with pytest.raises(UnsupportedError, match=r"kernel.cu\(2\)"):
        compile_source("\nint x = y;", HOPPER)
