"""The processors of the float kernels' tests, and two that stand in for those that this machine is
not: without products of bytes, with this machine's vectors or with none.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fewbit.kernels import Isa
from tests.kernels.conftest import RUNNABLE


@pytest.fixture(scope="session", params=[*RUNNABLE, "host", "plain", "scalar"])
def isa(request: pytest.FixtureRequest) -> Isa:
    plain = replace(Isa.of(RUNNABLE[-1]), name="plain", dot="plain")
    if request.param == "plain":
        return plain
    if request.param == "scalar":
        return replace(plain, name="scalar", vector_bits=32)
    return Isa.of(str(request.param))
