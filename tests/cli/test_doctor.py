"""`fewbit doctor`: tables for people, JSON for programs, and a status about the core."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewbit.cli import doctor, main
from fewbit.cli.guard import guarded
from fewbit.targets.probe import Report
from fewbit.targets.registry import target_names
from fewbit.toolchain.machine import Machine
from fewbit.toolchain.tools import Package, Tool

PROGRAM = Path(sys.executable).with_name("fewbit")
SECONDS = 5.0

EXAMINATION = doctor.Examination(
    fewbit="0.1.0",
    python="3.11.7",
    healthy=True,
    machine=Machine(
        "Linux 6",
        "x86_64",
        "Some CPU",
        "znver4",
        ("avx2",),
        8,
        {"L1d": 32768, "L2": 1 << 20},
        1 << 34,
    ),
    packages=[
        Package("torch", "==2.13.0", "2.13.0", None, True),
        Package("onnx", "==1.23.2", None, "onnx", False),
        Package("pytest", "", "9.2.0", "dev", True),
    ],
    tools=[Tool("gcc", "not needed", "/usr/bin/gcc", "12.2.0"), Tool("node", "x", None, None)],
    targets=[
        Report("interpreter", "works", "interpreted a function", ""),
        Report("cuda", "unavailable", "no GPU", "a GPU"),
    ],
)


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: EXAMINATION)


def rows(text: str) -> dict[str, str]:
    """The lines of the tables by their first word."""
    return {line.split()[0]: " ".join(line.split()) for line in text.splitlines() if line.strip()}


@pytest.mark.usefixtures("examined")
def test_the_tables_tell_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, ["doctor"]) == 0
    shown = rows(capsys.readouterr().out)
    assert shown["fewbit"] == "fewbit 0.1.0, Python 3.11.7"
    assert shown["8"] == "8 cores, 16.0 GiB memory, caches L1d 32 KiB, L2 1 MiB"
    assert shown["torch"] == "torch 2.13.0 ==2.13.0 ok"
    assert shown["onnx"] == "onnx not installed - pip install -e '.[onnx]'"
    assert shown["dev"] == "dev installed pytest 9.2.0"
    assert shown["gcc"] == "gcc 12.2.0 not needed /usr/bin/gcc"
    assert shown["node"] == "node not found x -"
    assert shown["interpreter"] == "interpreter works interpreted a function"
    assert shown["cuda"] == "cuda unavailable no GPU a GPU"


@pytest.mark.usefixtures("examined")
def test_json_is_the_same_content_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, ["doctor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["machine"]["features"] == ["avx2"]
    assert shown["packages"][1] == {
        "name": "onnx",
        "wanted": "==1.23.2",
        "found": None,
        "extra": "onnx",
        "suits": False,
    }
    assert [target["target"] for target in shown["targets"]] == ["interpreter", "cuda"]


@pytest.mark.parametrize("found", [None, "2.12.0"])
def test_a_broken_core_exits_1(
    found: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = Package("torch", "==2.13.0", found, None, False)
    broken = replace(EXAMINATION, healthy=False, packages=[torch])
    monkeypatch.setattr(doctor, "examine", lambda: broken)
    assert guarded(main.run, ["doctor"]) == 1
    shown = capsys.readouterr().out
    assert rows(shown)["torch"].endswith("missing" if found is None else "wrong version")
    assert "make setup" in shown


def test_health_is_about_core_packages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from fewbit.targets import probe
    from fewbit.toolchain import tools

    monkeypatch.setattr(probe, "probe_targets", list[Report])
    monkeypatch.setattr(tools, "tools", list[Tool])
    monkeypatch.setattr(tools, "packages", lambda: EXAMINATION.packages)
    assert doctor.examine().healthy
    missing = Package("xdsl", "==0.74.0", None, None, False)
    monkeypatch.setattr(tools, "packages", lambda: [*EXAMINATION.packages, missing])
    assert not doctor.examine().healthy


def test_the_real_thing_is_quick_and_reports_every_target() -> None:
    seconds, output = timed()
    found: dict[str, Any] = json.loads(output)
    assert found["healthy"]
    status = {report["target"]: report["status"] for report in found["targets"]}
    assert list(status) == ["interpreter", *target_names()]
    assert status["interpreter"] == "works"
    assert seconds < SECONDS


def timed() -> tuple[float, str]:
    """Processor seconds of one run, which a busy machine does not change much, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, done.stdout
