"""`fewbit tune`, and the times of `fewbit inspect --cost`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.analysis.cost import calibrate
from fewbit.analysis.cost.calibrate import Effort
from fewbit.cli.guard import guarded
from fewbit.cli.main import run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))


def test_it_must_be_said_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["tune"]) == 2
    assert "--calibrate" in capsys.readouterr().err
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
