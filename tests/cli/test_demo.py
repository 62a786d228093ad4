"""`fewbit demo` trains, quantizes and reports."""

from __future__ import annotations

import re

import pytest

from fewbit.cli.main import run


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(["demo", "--epochs", "2"])
    shown = capsys.readouterr().out
    assert "1x256" in shown
    assert "checksum 41fd9e354d9b1fae" in shown, "the same on every machine"
    accuracies = [float(x) for x in re.findall(r"(\d+\.\d)%", shown)]
    assert len(accuracies) == 4
    assert accuracies[0] > 80
    assert abs(accuracies[1] - accuracies[0]) < 2, "eight bits change little"
    assert abs(accuracies[2] - accuracies[0]) < 5, "so does the mixed scheme"
    for layer in ("conv1", "conv2", "fc1", "fc2", "fc3"):
        assert layer in shown


@pytest.mark.slow
def test_accuracy_of_the_full_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(["demo"])
    shown = capsys.readouterr().out
    full, eight, mixed, _ = (float(x) for x in re.findall(r"(\d+\.\d)%", shown))
    assert full >= 97
    assert full - eight <= 0.3
    assert full - mixed <= 0.5
