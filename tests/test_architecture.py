"""The picture of the house and its table are as the code is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_is_as_the_code_is() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "architecture.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_package_is_too_large() -> None:
    sizes = {
        folder.name: sum(path.read_text().count("\n") for path in folder.rglob("*.py"))
        for folder in (ROOT / "fewbit").iterdir()
        if folder.is_dir()
    }
    assert {name for name, size in sizes.items() if size > 0.15 * sum(sizes.values())} == set()
