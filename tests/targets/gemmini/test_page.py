"""What the page and the example on Gemmini show is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets.gemmini.test_target import compiled, example, integers, quantized
from tests.targets.test_hardware_page import numbers, rows
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
    wanted = [counts["commands"], counts["executed"], moved, counts["macs"], 100 * used]
    (row,) = rows(PAGE.name)[title]
    shown = [number for cell in row for number in numbers(cell)]
    assert shown[:4] == wanted[:4]
    assert shown[4:] == pytest.approx([wanted[4], counts["host instructions"]], rel=0.02)
