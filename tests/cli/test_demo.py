"""`fewbit demo` runs a whole network and says the same thing each time."""

from __future__ import annotations

import pytest

from fewbit.cli.main import run


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(["demo"])
    first = capsys.readouterr().out
    assert not run(["demo"])
    assert capsys.readouterr().out == first
    assert "mico.bitconv2d" in first
    assert "6 bits" in first
    assert "(1, 10) float32" in first


def test_seed_changes_the_checksum(capsys: pytest.CaptureFixture[str]) -> None:
    checksums: set[str] = set()
    for seed in ("1", "2"):
        assert not run(["demo", "--seed", seed])
        checksums.add(capsys.readouterr().out.splitlines()[-1])
    assert len(checksums) == 2
