"""TensorFlow SavedModels as programs.

TensorFlow takes more than a gigabyte, so it is not loaded here: a process of its own exports the
model to StableHLO (`worker`). It runs in this Python if that has TensorFlow, or in the one that
FEWBIT_TENSORFLOW_PYTHON names, which needs nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.files import PathLike
from fewbit.errors import MissingToolError, Place
from fewbit.frontends.handover import import_handover, run_worker
from fewbit.program.program import Program

PYTHON = "FEWBIT_TENSORFLOW_PYTHON"
MARK = "saved_model.pb"


def is_saved_model(path: Path) -> bool:
    return (path / MARK).is_file()


def import_saved_model(
    path: PathLike,
    input_shapes: Sequence[Sequence[int]] | None = None,
    *,
    signature: str = "",
) -> Program:
    """A program of a SavedModel; a batch that it leaves open is 1, with a warning."""
    worker = Path(__file__).with_name("worker.py")
    with TemporaryDirectory(prefix="fewbit-") as folder:
        command = [tensorflow_python(path), str(worker)]
        run_worker(command, Path(path), Path(folder), input_shapes, {}, signature)
        return import_handover(Path(folder), str(path))


def tensorflow_python(model: PathLike) -> str:
    """A Python that has TensorFlow."""
    named = os.environ.get(PYTHON)
    if named:
        return named
    if find_spec("tensorflow") is not None:
        return sys.executable
    raise MissingToolError(
        "TensorFlow is not installed",
        place=Place(file=str(model)),
        hint="pip install 'fewbit[tensorflow]', 1.6 GB; or keep it apart: "
        "python -m venv tf && tf/bin/pip install tensorflow-cpu, "
        f"and set {PYTHON}=tf/bin/python",
    )
