"""The page on IREE is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.test_docs import blocks

ROOT = Path(__file__).parents[3]


def test_python_of_the_page_runs() -> None:
    (code,) = blocks(ROOT / "docs" / "iree.md", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "head.weight" in done.stdout
