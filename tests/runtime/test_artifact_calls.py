"""An artifact from Python: compiled with passes of one's own, loaded again, called."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error, PassError, ShapeError, StoreError, UsageError

ROOT = Path(__file__).parents[2]
TEXT = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %z = mico.relu(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z, %y : tensor<?x4xf32>, tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def program() -> fewbit.Program:
    return fewbit.Program(fewbit.parse(TEXT))


@pytest.fixture(scope="module")
def folder(program: fewbit.Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fewbit.compile(
        program, "cpu", tmp_path_factory.mktemp("art") / "both", name="both"
    ).folder


def test_loaded_artifact_gives_all_outputs(folder: Path) -> None:
    art = fewbit.load(folder)
    x, y = np.array([[-1, 2, -3, 4]], np.float32), np.ones(4, np.float32)
    z, same = art(x, y)
    np.testing.assert_array_equal(z, np.maximum(x, 0))
    np.testing.assert_array_equal(same, y)
    for threads in (1, 2):
        np.testing.assert_array_equal(art.run(x, y, threads=threads)[0], z)


def test_wrong_inputs_are_errors(folder: Path) -> None:
    art = fewbit.load(folder)
    x, y = np.ones((1, 4), np.float32), np.ones(4, np.float32)
    with pytest.raises(UsageError, match="2 inputs"):
        art(x)
    with pytest.raises(ShapeError, match="float64"):
        art(x.astype(np.float64), y)
    with pytest.raises(ShapeError, match=r"'y' is 5, and the program takes 4"):
        art(x, np.ones(5, np.float32))


def test_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no artifact"):
        fewbit.load(tmp_path)


def test_unknown_target(program: fewbit.Program) -> None:
    with pytest.raises(UsageError, match="no target 'tpu'"):
        fewbit.compile(program, "tpu")


def test_function_as_a_pass_changes_the_program(program: fewbit.Program) -> None:
    from xdsl.rewriter import Rewriter

    seen: list[str] = []

    def drop_relu(module: Any) -> None:
        seen.append(module.name)
        for op in [op for op in module.walk() if op.name == "mico.relu"]:
            Rewriter.replace_op(op, [], list(op.operands))

    art = fewbit.compile(program, passes={"mico": [drop_relu]})
    x = np.array([[-1, 2, -3, 4]], np.float32)
    np.testing.assert_array_equal(art(x, np.ones(4, np.float32))[0], x)
    assert seen == ["builtin.module"]
    assert "mico.relu" in program.text()


def test_failure_of_a_pass_names_it(program: fewbit.Program) -> None:
    def clumsy(module: Any) -> None:
        raise KeyError("oops")

    with pytest.raises(PassError, match="oops") as caught:
        fewbit.compile(program, passes={"linalg": [clumsy]})
    assert caught.value.place.stage == "clumsy"


@pytest.mark.parametrize("passes", [{"nowhere": ["cse"]}, {"llvm": ["cse"]}, {"loops": ["no"]}])
def test_wrong_passes(program: fewbit.Program, passes: Any) -> None:
    with pytest.raises(Error):
        fewbit.compile(program, passes=passes)


def test_stages_are_watched(program: fewbit.Program) -> None:
    stages: dict[str, str] = {}
    fewbit.compile(program, watch=stages.__setitem__)
    assert list(stages) == ["mico", "kernel", "linalg", "memref", "loops", "llvm", "object"]
    assert "mico.relu" in stages["mico"]
    assert "define" in stages["llvm"]
    assert ".text" in stages["object"]


@pytest.mark.slow
def test_python_of_the_page_runs(tmp_path: Path) -> None:
    """All blocks of the page, one after another in one process."""
    page = (ROOT / "docs" / "compile.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
