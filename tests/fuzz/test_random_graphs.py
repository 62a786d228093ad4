"""A few random graphs; `make fuzz` tries a thousand, and reduces what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fewbit.reduce.check import Case, check_here
from tests.fuzz.onnx_models import random_onnx
from tests.fuzz.torch_graphs import NotExportedError, export_random

FEW, MANY = range(6), range(1000, 1100)


def check(model: Path, target: str) -> None:
    failure = check_here(model, Case(target))
    assert failure is None or failure.kind == "refused", f"{model.name}: {failure}"


@pytest.mark.parametrize("seed", FEW)
def test_onnx(tmp_path: Path, seed: int) -> None:
    model = tmp_path / f"onnx{seed}.onnx"
    model.write_bytes(random_onnx(seed).SerializeToString())
    check(model, "cpu")


@pytest.mark.parametrize("seed", FEW)
def test_torch(tmp_path: Path, seed: int) -> None:
    exporter: Any = torch.export
    try:
        exported = export_random(seed)
    except NotExportedError as e:
        pytest.skip(f"PyTorch does not export it: {e}")
    exporter.save(exported, tmp_path / f"torch{seed}.pt2")
    check(tmp_path / f"torch{seed}.pt2", "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "iree-cpu"])
@pytest.mark.parametrize("seed", MANY)
def test_many(tmp_path: Path, seed: int, target: str) -> None:
    model = tmp_path / f"onnx{seed}.onnx"
    model.write_bytes(random_onnx(seed).SerializeToString())
    check(model, target)


def test_a_seed_is_a_graph() -> None:
    assert random_onnx(3).SerializeToString() == random_onnx(3).SerializeToString()
    assert random_onnx(3).SerializeToString() != random_onnx(4).SerializeToString()
