"""Models by name, with inputs of fixed sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.bench.subject import SAMPLES, find_subject
from fewbit.errors import ShapeError, UsageError

FACTORY = """
import torch
def made():
    return torch.nn.Linear(4, 2), torch.arange(8.0).reshape(2, 4)
def bare():
    return torch.nn.Linear(4, 2)
"""
TEXT = """
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %z = mico.relu(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(FACTORY)
    return path


def test_a_model_of_the_zoo_has_fixed_sizes() -> None:
    subject = find_subject("zoo:mlp", batch=3)
    assert [a.shape for a in subject.inputs] == [(3, 1, 28, 28)]
    assert [port.shape for port in subject.program.signature.inputs] == [(3, 1, 28, 28)]
    expected = subject.expected()
    assert expected is not None
    (mine,) = subject.program.run(*subject.inputs)
    assert np.allclose(mine, expected[0], atol=1e-5)


def test_inputs_of_a_factory_fill_the_batch(file: Path) -> None:
    subject = find_subject(f"{file}:made", batch=3)
    assert subject.inputs[0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]


def test_a_model_without_inputs_needs_sizes(file: Path) -> None:
    with pytest.raises(UsageError, match="inputs are") as caught:
        find_subject(f"{file}:bare")
    assert "--input-shape" in str(caught.value.hint)
    assert find_subject(f"{file}:bare", [(5, 4)]).inputs[0].shape == (5, 4)


def test_a_program_has_no_module(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text(TEXT)
    subject = find_subject(str(path), batch=2)
    assert subject.module is None
    assert subject.expected() is None
    assert subject.inputs[0].shape == (2, 4)
    with pytest.raises(UsageError, match="fixed"):
        find_subject(str(path), [(1, 4)])


def test_a_fixed_batch_stays(tmp_path: Path) -> None:
    fewbit.Program(fewbit.parse(TEXT.replace("?", "2"))).save(tmp_path / "saved")
    with pytest.raises(ShapeError, match="no batch of 3"):
        find_subject(str(tmp_path / "saved"), batch=3)


def test_samples_are_as_inputs(file: Path) -> None:
    samples = find_subject(f"{file}:made").random_samples()
    assert len(samples) == SAMPLES
    assert {a.shape for (a,) in samples} == {(2, 4)}
    assert not np.array_equal(samples[0][0], samples[1][0])
