"""The processors whose code this machine can execute, each with its kernels compiled once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fewbit.kernels import Isa
from fewbit.toolchain.isa import names
from fewbit.toolchain.llvm import host_features

RUNNABLE = [n for n in names() if Isa.of(n).runs_on(host_features())]


def kernels_of(name: str) -> Isa:
    """Return what kernels are chosen by: LLVM's own scheduling changes no kernel."""
    return replace(Isa.of(name), name="", cpu="", features="")


KNOWN = kernels_of("host") in map(kernels_of, RUNNABLE)
HOST = pytest.param("host", marks=pytest.mark.slow) if KNOWN else "host"
"""This machine, whose kernels need not be tested twice where another has the same ones."""


FEW = (RUNNABLE[0], RUNNABLE[-1])
"""The plainest processor and the richest one: what `on_few` has in every run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave other processors to `make test-slow` where each of them takes seconds."""
    for item in items:
        if item.get_closest_marker("on_few") is None or not isinstance(item, pytest.Function):
            continue
        if item.callspec.params["isa"] not in FEW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=[*RUNNABLE, HOST])
def isa(request: pytest.FixtureRequest) -> Isa:
    return Isa.of(str(request.param))
