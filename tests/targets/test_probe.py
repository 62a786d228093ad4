"""Probes run something real, and say what is missing where they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fewbit.runtime import Artifact
from fewbit.targets import probe, registry
from fewbit.targets.probe import Found, Report, Target, probe_target


def test_the_interpreter_works() -> None:
    (target,) = (target for target in probe.TARGETS if target.name == "interpreter")
    assert probe_target(target) == Report("interpreter", "works", "interpreted a function", "")


def test_a_native_function_is_generated_linked_and_called() -> None:
    assert probe.probe_native().works


def test_iree_compiles_and_runs_on_the_cpu() -> None:
    assert probe.probe_iree(probe.IREE_CPU).works


def test_a_target_whose_probe_finds_nothing_says_why_and_what_to_install() -> None:
    target = Target("abacus", lambda: Found(False, "no beads", "beads"))
    assert probe_target(target) == Report("abacus", "unavailable", "no beads", "beads")


def test_a_probe_that_breaks_is_a_reason_not_a_crash() -> None:
    def broken() -> Found:
        raise OSError("the beads fell\noff")

    report = probe_target(Target("abacus", broken))
    assert (report.status, report.why) == ("unavailable", "the probe failed: the beads fell")


def test_wheels_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "program_path", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert probe.probe_native() == Found(
        False, "the linker of iree-base-compiler is missing", probe.REINSTALL
    )
    assert not probe.probe_iree(probe.IREE_CPU).works


def test_a_device_that_computes_wrongly_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho '4xi32=1 1 1 1'\n")
    liar.chmod(0o755)
    monkeypatch.setattr(probe, "program_path", lambda name: str(liar))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = probe.probe_iree(probe.IREE_VULKAN)
    assert (found.works, found.why) == (False, "IREE computed a wrong result on its Vulkan device")


def test_a_device_that_is_absent_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tmp_path / "absent"
    absent.write_text("#!/bin/sh\nexit 1\n")
    absent.chmod(0o755)
    monkeypatch.setattr(probe, "program_path", lambda name: str(absent))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = probe.probe_iree(probe.IREE_ROCM)
    assert found == Found(False, "IREE finds no ROCm device", probe.IREE_ROCM.install)


def test_every_target_of_the_registry_is_probed() -> None:
    assert [target.name for target in probe.TARGETS] == ["interpreter", *registry.TARGETS]


@pytest.mark.parametrize("name", ["vexii", "gemmini", "bitfusion"])
def test_a_simulated_target_works_on_any_machine(name: str) -> None:
    (target,) = (target for target in probe.TARGETS if target.name == name)
    assert probe_target(target) == Report(
        name, "works", "compiled and ran a layer on its simulator", ""
    )


def test_a_target_that_computes_wrongly_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Artifact.run

    def wrong(artifact: Artifact, *arrays: Any) -> tuple[Any, ...]:
        return tuple(1 + y for y in right(artifact, *arrays))

    monkeypatch.setattr(Artifact, "run", wrong)
    found = probe.probe_layer("bitfusion")
    assert not found.works
    assert "where the interpreter says" in found.why


def test_a_target_that_cannot_compile_says_why() -> None:
    found = probe.probe_layer("cuda:sm_1")
    assert not found.works
    assert "sm_1" in found.why
