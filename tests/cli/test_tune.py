"""`fewbit tune`, and the times of `fewbit inspect --cost`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.cli.tune import parse_time
from fewbit.cost.cpu import calibrate
from fewbit.cost.cpu.calibrate import Effort


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))


def test_it_must_be_said_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["tune"]) == 2
    assert "'fewbit tune calibrate'" in capsys.readouterr().err
    assert guarded(run, ["tune", "--show", "--quick"]) == 2


def test_show_without_a_calibration(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["tune", "--show"]) in (0, None)
    assert "not calibrated" in capsys.readouterr().out
    assert guarded(run, ["tune", "--show", "--json"]) in (0, None)
    assert json.loads(capsys.readouterr().out)["date"] == ""


def test_calibrate_and_show(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(calibrate, "QUICK", Effort(2, 1, 1))
    monkeypatch.setattr(calibrate, "SIZES", (1 << 15, 1 << 20))
    assert guarded(run, ["-q", "tune", "--calibrate", "--quick"]) in (0, None)
    assert "calibrated on 20" in capsys.readouterr().out
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert guarded(run, ["tune", "--show"]) in (0, None)
    assert "calibrated on 20" in capsys.readouterr().out


def test_inspect_with_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["inspect", "zoo:lenet", "-r", "w4a8", "--cost", "--json"]) in (0, None)
    cost = json.loads(capsys.readouterr().out)["cost"]
    assert not cost["calibrated"]
    assert sum(layer["share"] for layer in cost["layers"]) == pytest.approx(1)
    assert set(cost["layers"][0]["seconds_by_width"]) == set("12345678")
    assert guarded(run, ["inspect", "zoo:lenet", "--cost", "--threads", "2"]) in (0, None)
    out = capsys.readouterr().out
    assert "2 threads, not calibrated" in out
    assert "as fast" in out


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("5m", 300.0), ("1h", 3600.0)])
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "soon"], "is no time"),
        (["--model", "guess"], "no cost model 'guess'"),
        (["-t", "iree-vulkan"], "there is no autotuning for iree-vulkan"),
        (["--pass", "inlin"], "no pass 'inlin'"),
        (["--pass", "nowhere.py:Mark"], "no file 'nowhere.py'"),
    ],
)
def test_mistakes(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["-q", "tune", "zoo:mlp", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_database_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")
    for target in ("cpu", "iree-cpu"):
        command = ["-q", "compile", "zoo:mlp", "-t", target, "-o", str(tmp_path / "o")]
        assert guarded(run, [*command, "--tuning-db", missing]) == 2
        assert "no tuning database" in capsys.readouterr().err


PASS = """
from dataclasses import dataclass
from xdsl.dialects.builtin import UnitAttr
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Mark(ModulePass):
    name = "mark"
    number: int = 0

    @classmethod
    def schedule_space(cls, ctx, module_op):
        return (Mark(1), Mark(2))

    def apply(self, ctx, op):
        op.attributes["fewbit.mark"] = UnitAttr()
"""


@pytest.mark.parametrize("target", ["cpu", "iree-cpu"])
def test_a_pass_joins_the_search(
    target: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mark.py"
    file.write_text(PASS)
    command = ["-q", "tune", "zoo:mlp", "-t", target, "--pass", f"{file}:Mark"]
    assert guarded(run, [*command, "--json"]) in (0, None)
    found = json.loads(capsys.readouterr().out)["choices"]
    assert {choice["pass"] for choice in found} == {"mark{number=1}", "mark{number=2}"}
    assert all(choice["ratio"] is not None for choice in found)


@pytest.mark.slow
def test_tune_and_compile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert guarded(run, ["-q", "tune", "zoo:lenet", "--time", "60s", "--json"]) in (0, None)
    report = json.loads(capsys.readouterr().out)
    assert {op["name"] for op in report["ops"]}
    assert all(op["reason"] or op["tiles"] for op in report["ops"])
    assert report["after_seconds"] <= 1.03 * report["before_seconds"]
    output = str(tmp_path / "lenet")
    assert guarded(run, ["-q", "compile", "zoo:lenet", "-t", "iree-cpu", "-o", output]) in (0, None)
    spec = tmp_path / "spec.mlir"
    assert guarded(run, ["-q", "tune", "--export", str(spec)]) in (0, None)
    assert "module @tuning" in spec.read_text()
