"""To lower a program is to compile it and stop early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fewbit
from fewbit.cli import opt
from fewbit.pipeline import driver
from fewbit.pipeline.compilation import VERIFY, run_passes
from fewbit.pipeline.driver import Watcher
from fewbit.program.program import Program
from fewbit.targets.compile import lower
from fewbit.targets.registry import find_target
from fewbit.targets.target import Request

TARGETS = ("cpu:x86-64-v3", "cuda", "vexii", "gemmini", "bitfusion")


@pytest.fixture(scope="module")
def program() -> Program:
    return fewbit.quantize(fewbit.import_model("zoo:mlp"), "w4a8")


@pytest.mark.parametrize("target", [*TARGETS, "iree-cpu"])
def test_every_stage_of_lower_is_that_of_compile(
    target: str, program: Program, tmp_path: Path
) -> None:
    texts: dict[str, str] = {}
    fewbit.compile(program, target, tmp_path / "net", watch=texts.__setitem__)
    assert tuple(texts) == find_target(target).stages
    for stage, text in texts.items():
        assert lower(program, stage, target, name="net") == text, stage


@pytest.mark.parametrize("target", TARGETS)
def test_the_printed_pipeline_gives_the_text_of_the_last_stage(
    target: str, program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.save(tmp_path / "program")
    assert opt.run(["--print-pipeline", "-t", target]) == 0
    passes = capsys.readouterr().out
    assert opt.run([str(tmp_path / "program"), "-t", target, "-p", passes, "-q"]) == 0
    last = find_target(target).stages[-1]
    assert capsys.readouterr().out == lower(program, last, target)


def test_a_pass_of_a_late_stage_runs_on_the_text_before_it(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loop nests say what they are in the text, so no other pass has to run before."""
    before = find_target("cpu").begin(program, Request("cpu")).run("memref").text
    (tmp_path / "memref.mlir").write_text(before)
    passes = "tile-loops,func.func(convert-linalg-to-affine-loops),lower-affine,share-work"
    assert opt.run([str(tmp_path / "memref.mlir"), "-p", passes]) == 0
    assert "threads.barrier" in capsys.readouterr().out


def verified_stages(
    program: Program, monkeypatch: pytest.MonkeyPatch, watch: Watcher | None = None
) -> list[str | None]:
    stages: list[str | None] = []

    def note(module: object, stage: str | None) -> None:
        stages.append(stage)

    monkeypatch.setattr(driver, "verify_module", note)
    begun = find_target("cpu").begin(program, Request("cpu"))
    replace(begun, watch=watch).run("memref")
    return stages


def test_stages_in_xdsl_are_verified_when_somebody_looks(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ["mico", "kernel", "linalg", "memref"]
    assert verified_stages(program, monkeypatch) == every, "tests verify all"
    monkeypatch.delenv(VERIFY)
    assert verified_stages(program, monkeypatch) == ["mico", "memref"]
    seen: dict[str, str] = {}
    assert verified_stages(program, monkeypatch, seen.__setitem__) == every
    assert list(seen) == every


def test_passes_give_a_copy(program: Program) -> None:
    before = program.text()
    after = run_passes(program, "inline", "select-kernels")
    assert program.text() == before
    assert "kernel.matmul" in after.text()
