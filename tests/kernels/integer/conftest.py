"""The processors of the float kernels' tests, and some that stand in for those that this machine is
not: without dot products of bytes, with this machine's vectors or with none; and the code for AVX-VNNI,
whose instructions AVX-512 has in another encoding.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fewbit.kernels import Isa
from fewbit.toolchain.isa import PLAIN
from tests.kernels.conftest import HOST, RUNNABLE

_AVX_VNNI = "x86-64-v3-vnni"
STAND_INS = ["plain", "scalar"]
if _AVX_VNNI not in RUNNABLE and "x86-64-v4-vnni" in RUNNABLE:
    STAND_INS.append(_AVX_VNNI)


@pytest.fixture(scope="session", params=[*RUNNABLE, HOST, *STAND_INS])
def isa(request: pytest.FixtureRequest) -> Isa:
    return stand_in(str(request.param))


def stand_in(name: str) -> Isa:
    """Return the processor of this name, or what stands in for it."""
    plain = replace(Isa.of(RUNNABLE[-1]), name="plain", dot=PLAIN)
    if name == "plain":
        return plain
    if name == "scalar":
        return replace(plain, name="scalar", vector_bits=32)
    if name == _AVX_VNNI and _AVX_VNNI in STAND_INS:
        return replace(Isa.of(_AVX_VNNI), name="avx-vnni", features="+avx512vnni,+avx512vl")
    return Isa.of(name)
