"""The program on the page about the simulator prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "riscv-simulator.md"


def test_the_program_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    match = re.search(r"```python\n(.*?)```\n\nIt prints `([^`]+)`", text, re.DOTALL)
    assert match
    done = subprocess.run(
        [sys.executable, "-c", match[1]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == match[2]
