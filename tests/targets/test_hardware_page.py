"""Numbers on the pages about hardware are those of the commands that they show.

What is counted of a program that LLVM compiled may move a little with LLVM and with lowering, so
numbers agree if they are within 2 %.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from tests.test_docs import ROOT

SEED = "[[8,6,6,4,4],[8,8,8,8,8]]"
MODELS = [
    ("zoo:lenet", SEED, f"LeNet, `{SEED}`"),
    pytest.param("zoo:resnet8", "w8a8", "ResNet-8, `w8a8`", marks=pytest.mark.slow),
    pytest.param("zoo:ds-cnn", "w8a8", "DS-CNN, `w8a8`", marks=pytest.mark.slow),
]


def stats(model: str, recipe: str, target: str, folder: Path, capsys: Any) -> dict[str, Any]:
    artifact = str(folder / target)
    assert guarded(run, ["-q", "compile", model, "-r", recipe, "-t", target, "-o", artifact]) == 0
    capsys.readouterr()
    assert guarded(run, ["-q", "run", artifact, "--stats", "--json"]) in (0, None)
    return json.loads(capsys.readouterr().out)["stats"]


def numbers(text: str) -> list[float]:
    """`8.3 M *small*, 1,030 commands` has 8.3e6 and 1030."""
    found = re.findall(r"(\d[\d,]*(?:\.\d+)?)( M\b)?", text.replace("RV64", ""))
    return [float(digits.replace(",", "")) * (1e6 if unit else 1) for digits, unit in found]


def rows(page: str) -> dict[str, list[list[str]]]:
    """Rows of tables by their first cell; one that is empty goes on with the row before."""
    made: dict[str, list[list[str]]] = {}
    title = ""
    for line in (ROOT / "docs" / page).read_text().splitlines():
        if line.startswith("|"):
            first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            title = first or title
            made.setdefault(title, []).append(rest)
    return made


@pytest.mark.parametrize(("model", "recipe", "title"), MODELS)
def test_the_table_of_all_targets(
    model: str, recipe: str, title: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {row[0]: row for row in rows("hardware.md")[title]}
    assert set(shown) == {"vexii", "gemmini", "bitfusion"}
    for target, (_, counted, cycles, *_) in shown.items():
        found = stats(model, recipe, target, tmp_path, capsys)
        assert numbers(counted) == pytest.approx(_counts(target, found["counts"]), rel=0.02)
        wanted = [estimate["cycles"] for estimate in found["estimates"]]
        energy = found["estimates"][0]["energy"]
        wanted += [] if energy is None else [energy / 1e6]
        assert numbers(cycles) == pytest.approx(wanted, rel=0.02)


def _counts(target: str, counts: Mapping[str, int]) -> list[int]:
    if target == "vexii":
        return [counts["instructions"], counts["dot"]]
    if target == "gemmini":
        moved = counts["bytes read"] + counts["bytes written"]
        return [counts["commands"], moved, counts["host instructions"]]
    return [counts["brick products"], counts["tiles"]]


@pytest.mark.parametrize(
    ("model", "name", "recipe"),
    [
        ("zoo:lenet", "LeNet", "w8a8"),
        ("zoo:lenet", "LeNet", "w2a2"),
        pytest.param("zoo:ds-cnn", "DS-CNN", "w4a4", marks=pytest.mark.slow),
        pytest.param("zoo:resnet8", "ResNet-8", "w8a8", marks=pytest.mark.slow),
    ],
)
def test_the_table_of_widths_on_vexii(
    model: str, name: str, recipe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = (row for row in rows("vexii.md")[name] if row[0] == f"`{recipe}`")
    found = stats(model, recipe, "vexii", tmp_path, capsys)
    counts = [found["counts"][kind] for kind in ("instructions", "dot")]
    cycles = {each["machine"]: each["cycles"] for each in found["estimates"]}
    wanted = [*counts, *(cycles[core] for core in ("small", "high", "cacheless"))]
    assert [number for cell in shown[1:6] for number in numbers(cell)] == pytest.approx(
        wanted, rel=0.02
    )


def test_one_network_by_two_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same core takes several times as long with MiCo's library, and pages say which is which."""
    text = (ROOT / "docs" / "cycles.md").read_text()
    theirs, ours = re.findall(r"^\| `fewbit [^|]*\| ([^|]*) \|", text, re.MULTILINE)
    assert guarded(run, ["-q", "inspect", "zoo:lenet", "-r", "w8a8", "--cycles", "--json"]) in (0, None)  # fmt: skip
    layers = json.loads(capsys.readouterr().out)["cycles"]
    cores = ("small", "high", "cacheless")
    sums = [sum(layer[core] for layer in layers) for core in cores]
    assert numbers(theirs) == pytest.approx(sums, rel=0.02)
    found = stats("zoo:lenet", "w8a8", "vexii", tmp_path, capsys)
    assert numbers(ours) == pytest.approx([e["cycles"] for e in found["estimates"]], rel=0.02)
