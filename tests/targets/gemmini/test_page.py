"""What the page and the example on Gemmini show is true."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "gemmini.md"


@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_python_of_the_page_runs(code: str) -> None:
    exec(compile(code, PAGE.name, "exec"), {})


def test_the_example_runs() -> None:
    path = ROOT / "examples" / "gemmini_matmul.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert [line.split(":")[0] for line in done.stdout.splitlines()[:3]] == [
        "loop",
        "explicit",
        "output-stationary",
    ]
