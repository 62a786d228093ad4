"""Probes run something real, and say what is missing where they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fewbit.runtime import Artifact
from fewbit.targets import probe
from fewbit.targets.cpu import probe as cpu
from fewbit.targets.iree import probe as iree
from fewbit.targets.probe import Found, Report, probe_interpreter, probe_target
from fewbit.targets.registry import find_target, target_names
from fewbit.targets.target import Target


def test_the_interpreter_works() -> None:
    assert probe_target("interpreter", probe_interpreter) == Report(
        "interpreter", "works", "interpreted a function", ""
    )


def test_a_native_function_is_generated_linked_and_called() -> None:
    assert cpu.probe_native().works


def test_iree_compiles_and_runs_on_the_cpu() -> None:
    assert iree.probe_iree(iree.IREE_CPU).works


def test_a_target_whose_probe_finds_nothing_says_why_and_what_to_install() -> None:
    found = Found(False, "no beads", "beads")
    assert probe_target("abacus", lambda: found) == Report(
        "abacus", "unavailable", "no beads", "beads"
    )


def test_a_probe_that_breaks_is_a_reason_not_a_crash() -> None:
    def broken() -> Found:
        raise OSError("the beads fell\noff")

    report = probe_target("abacus", broken)
    assert (report.status, report.why) == ("unavailable", "the probe failed: the beads fell")


def test_wheels_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cpu, iree):
        monkeypatch.setattr(module, "program_path", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert cpu.probe_native() == Found(
        False, "the linker of iree-base-compiler is missing", probe.REINSTALL
    )
    assert not iree.probe_iree(iree.IREE_CPU).works


def test_a_device_that_computes_wrongly_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho '4xi32=1 1 1 1'\n")
    liar.chmod(0o755)
    monkeypatch.setattr(iree, "program_path", lambda name: str(liar))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    probed = iree.probe_iree(iree.IREE_VULKAN)
    assert (probed.works, probed.why) == (
        False,
        "IREE computed a wrong result on its Vulkan device",
    )


def test_a_device_that_is_absent_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tmp_path / "absent"
    absent.write_text("#!/bin/sh\nexit 1\n")
    absent.chmod(0o755)
    monkeypatch.setattr(iree, "program_path", lambda name: str(absent))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    probed = iree.probe_iree(iree.IREE_ROCM)
    assert probed == Found(False, "IREE finds no ROCm device", iree.IREE_ROCM.install)


def test_every_target_of_the_registry_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(target: Target, name: str) -> Found:
        return Found(True, name)

    for name in target_names():
        monkeypatch.setattr(type(find_target(name)), "probe", none)
    assert [r.target for r in probe.probe_targets()] == ["interpreter", *target_names()]


@pytest.mark.parametrize("name", ["vexii", "gemmini", "bitfusion"])
def test_a_simulated_target_works_on_any_machine(name: str) -> None:
    assert probe_target(name, lambda: find_target(name).probe(name)) == Report(
        name, "works", "compiled and ran a layer on its simulator", ""
    )


def test_a_target_that_computes_wrongly_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Artifact.run

    def wrong(artifact: Artifact, *arrays: Any) -> tuple[Any, ...]:
        return tuple(1 + y for y in right(artifact, *arrays))

    monkeypatch.setattr(Artifact, "run", wrong)
    probed = probe.probe_layer("bitfusion")
    assert not probed.works
    assert "where the interpreter says" in probed.why


def test_a_target_that_cannot_compile_says_why() -> None:
    probed = probe.probe_layer("cuda:sm_1")
    assert not probed.works
    assert "sm_1" in probed.why
