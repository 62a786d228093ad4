"""What the page and the example on Gemmini show is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets.gemmini.test_target import compiled, example, integers, quantized
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


@pytest.mark.parametrize(
    ("title", "name", "static"),
    [
        ("LeNet", "lenet", False),
        ("LeNet, integers only", "lenet", True),
        pytest.param("ResNet-8", "resnet8", False, marks=pytest.mark.slow),
        pytest.param("ResNet-8, integers only", "resnet8", True, marks=pytest.mark.slow),
    ],
)
def test_what_a_run_costs(title: str, name: str, static: bool, tmp_path: Path) -> None:
    program = integers(name, "w8a8-tensor-static") if static else quantized(name, "w8a8")
    counts = compiled(program, tmp_path / "net", example(name)).execution.events.counts
    moved = counts["bytes read"] + counts["bytes written"]
    used = counts["macs"] / (counts["computes"] * 16**3)
    numbers = [counts["commands"], counts["executed"], moved, counts["macs"]]
    row = [title, *(f"{n:,}" for n in numbers), f"{used:.1%}".replace("%", " %")]
    line = "| " + " | ".join([*row, f"{counts['host instructions']:,}"]) + " |"
    assert line in PAGE.read_text()
