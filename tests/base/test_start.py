"""Processes of ours, started where hostile modules lie: none of these is imported."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import fewbit
from fewbit.base.start import command
from fewbit.bench.case import COMPILED, Case
from fewbit.bench.contest import Prepared, contest
from fewbit.errors import Error
from fewbit.tune.workers import do_all

HOSTILE = (
    "fewbit", "numpy", "torch", "keras", "jax", "tensorflow", "json", "multiprocessing", "pathlib",
    "runpy", "importlib", "ml_dtypes", "onnx", "random", "xdsl", "pydantic", "iree",
)  # fmt: skip


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules in it that leave a file when they are imported."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in HOSTILE:
        text = f"open({str(folder / 'imported')!r}, 'a').write({name!r})\nraise SystemExit(3)\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    return folder


def imported(folder: Path) -> str:
    path = folder / "imported"
    return path.read_text() if path.exists() else ""


def test_the_worker_of_benchmarks(hostile_folder: Path, tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
"""
    case = Case(folder=tmp_path / "case", model=None, quantized=False)
    fewbit.compile(fewbit.Program(fewbit.parse(text)), "cpu", case.folder / COMPILED, name="net")
    case.save(None, [np.array([-1, 2, -3, 4], np.float32)], [])
    times, absent = contest(case, {"fewbit": Prepared("compiled")}, 1, 0.05)
    assert (imported(hostile_folder), absent, set(times)) == ("", {}, {"fewbit"})


def test_workers_of_the_search_for_tiles(hostile_folder: Path) -> None:
    assert sorted(do_all(math.factorial, [3, 4], "2")) == [(3, 6), (4, 24)]
    assert imported(hostile_folder) == ""
    assert "PYTHONSAFEPATH" not in os.environ


def test_the_process_that_measures_on_a_gpu(hostile_folder: Path, tmp_path: Path) -> None:
    """Without a GPU it fails, but only once it has imported what it needs."""
    started = command("fewbit.tune.cuda.measure", str(tmp_path / "none"))
    done = subprocess.run(started, capture_output=True, text=True)
    assert imported(hostile_folder) == ""
    assert done.returncode != 3


@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
def test_the_worker_of_keras(hostile_folder: Path, tmp_path: Path) -> None:
    from fewbit.frontends.keras import import_keras_file

    broken = tmp_path / "model.keras"
    with ZipFile(broken, "w") as archive:  # whole, so that only the worker sees that it is none
        for part in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(part, "{}")
    with pytest.raises(Error, match="model is not exported") as caught:
        import_keras_file(broken)
    assert imported(hostile_folder) == ""
    assert "model.keras" in str(caught.value)


def test_the_worker_of_tensorflow(
    hostile_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewbit.frontends.tensorflow import PYTHON, import_saved_model

    monkeypatch.setenv(PYTHON, sys.executable)
    (tmp_path / "saved").mkdir()
    with pytest.raises(Error, match="model is not exported"):
        import_saved_model(tmp_path / "saved")
    assert imported(hostile_folder) == ""


def test_a_package_that_is_not_installed_starts_itself(tmp_path: Path) -> None:
    """The process has the package that starts it, and no other, as from a checkout."""
    package = tmp_path / "fewbit"
    (package / "base").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    start = Path(fewbit.__file__).parent / "base" / "start.py"
    (package / "base" / "start.py").write_text(start.read_text())
    (package / "said.py").write_text("import sys\nprint(__file__, *sys.argv[1:])")
    run = [sys.executable, "-P", str(package / "base" / "start.py"), "fewbit.said", "a", "b"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.split() == [str(package / "said.py"), "a", "b"]
