"""The description of this machine, and that what a platform hides is left empty."""

from __future__ import annotations

import platform

import pytest

from fewbit.toolchain import machine
from fewbit.toolchain.machine import FEATURES_THAT_MATTER, this_machine


def test_it_describes_the_machine_the_tests_run_on() -> None:
    machine = this_machine()
    assert machine.architecture == platform.machine()
    assert machine.cores >= 1
    assert machine.llvm_processor
    assert set(machine.features) <= set(FEATURES_THAT_MATTER)


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /sys and sysconf of Linux")
def test_memory_is_known_on_linux() -> None:
    assert this_machine().memory > 1 << 28


def test_without_llvm_the_features_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> set[str]:
        raise ImportError("no llvmlite")

    monkeypatch.setattr(machine, "host_features", missing)
    found = this_machine()
    assert (found.llvm_processor, found.features) == ("", ())
