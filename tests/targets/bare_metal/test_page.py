"""Commands of the page do what it shows. Instructions may move a little with LLVM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fewbit.targets.bare_metal.program import read_report
from tests.commands import run_command
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "cores.md").read_text()


def blocks() -> list[str]:
    return re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 2])
def test_commands_of_the_page(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = blocks()[number].splitlines()
    assert len(lines) == 2
    for line in lines:
        capsys.readouterr()
        run_command(line)
    printed = capsys.readouterr().out
    found = read_report(printed)
    assert found["status"] == 0
    assert found["equal"] == found["of"] == 10
    if number == 0:
        assert found == pytest.approx(dict(read_report(blocks()[1])), rel=0.02)
