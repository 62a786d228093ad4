"""The program of the page on placement."""

from __future__ import annotations

import pytest

from tests.commands import run_python
from tests.test_docs import ROOT, blocks


@pytest.mark.slow
def test_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(ROOT / "docs" / "placement.md", "python")
    run_python(code)
    shown = capsys.readouterr().out
    assert "'cpu:x86-64-v3', 'cpu', 'gemmini', 'cpu'" in shown
    assert "all transfers" in shown
