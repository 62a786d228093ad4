"""Calibrations in the cache folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fewbit.base.cache import cache_folder
from fewbit.cost.cpu.calibration import Accuracy, Calibration
from fewbit.cost.cpu.store import (
    calibration_path,
    load_calibration,
    save_calibration,
)
from fewbit.kernels import Isa


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))


def measured() -> Calibration:
    default = Calibration.default(Isa.host())
    return replace(
        default, processor="some", date="2026-01-02", accuracy=Accuracy(10, 0.05, 0.1, 0.9)
    )


def test_what_is_saved_is_loaded() -> None:
    save_calibration(measured())
    assert load_calibration() == measured()


def test_without_one_there_is_a_default() -> None:
    assert not load_calibration().is_calibrated


def test_other_processors_have_the_default() -> None:
    save_calibration(measured())
    assert not load_calibration(Isa.of("aarch64")).is_calibrated


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("FEWBIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "fewbit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "fewbit"


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        '{"format": 1}',
        '{"format": 99}',
        "\0",
    ],
)
def test_a_broken_file_is_ignored_with_a_warning(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = calibration_path(Isa.host())
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert not load_calibration().is_calibrated
    assert "warning" in capsys.readouterr().err


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "x", None])
def test_a_wrong_number_is_ignored_with_a_warning(
    value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_calibration(measured())
    stored = json.loads(path.read_text())
    stored["coefficients"]["i8.steps"] = value
    path.write_text(json.dumps(stored))
    assert not load_calibration().is_calibrated
    assert "is no time" in capsys.readouterr().err
