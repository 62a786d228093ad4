"""What a benchmark tells, and its page in the documentation."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.bench.report import Plan, Report, ToolTime, measure
from fewbit.bench.subject import Subject

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
TEXT = """
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = mico.relu(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %z : tensor<2x4xf32>
}
"""


def test_a_program_is_measured() -> None:
    program = fewbit.Program(fewbit.parse(TEXT))
    subject = Subject("net.mlir", program, None, [np.ones((2, 4), np.float32)])
    report = measure(subject, program, Plan(seconds=0.05))
    assert (report.batch, report.sizes.float32) == (2, 0)
    (row,) = report.times[0].tools
    assert row.throughput == pytest.approx(2 / row.median)
    assert [layer.kernels for layer in report.layers] == [("loop",)]
    (plain,) = report.plain()["layers"]
    assert plain["achieved"] == report.layers[0].achieved > 0


def test_a_module_of_iree_is_measured() -> None:
    program = fewbit.Program(fewbit.parse(TEXT))
    subject = Subject("net.mlir", program, None, [np.ones((2, 4), np.float32)])
    report = measure(
        subject, program, Plan(target="iree-cpu", seconds=0.05, options={"kernels": True})
    )
    assert (report.target, report.options, report.layers) == ("iree-cpu", {"kernels": True}, [])
    assert report.times[0].tools[0].least > 0


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text().partition("## JSON")[2]))
    assert {f.name for kind in (Report, ToolTime) for f in fields(kind)} <= named


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(code, {})
    assert len(capsys.readouterr().out.splitlines()) == 3
