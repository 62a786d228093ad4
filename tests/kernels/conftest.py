"""The processors whose code this machine can execute, each with its kernels compiled once."""

from __future__ import annotations

import pytest

from fewbit.kernels import Isa
from fewbit.toolchain.isa import names
from fewbit.toolchain.llvm import host_features

RUNNABLE = [n for n in names() if Isa.of(n).runs_on(host_features())]


@pytest.fixture(scope="session", params=[*RUNNABLE, "host"])
def isa(request: pytest.FixtureRequest) -> Isa:
    return Isa.of(str(request.param))
