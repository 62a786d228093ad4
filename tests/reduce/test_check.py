"""What works, what is refused, what is wrong, and what never ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fewbit.reduce.check import (
    INTERPRETER,
    Case,
    Checker,
    check_here,
    difference,
    rounding_errors,
)
from tests.reduce.chains import write


@pytest.mark.parametrize("target", [INTERPRETER, "cpu"])
def test_a_model_that_works(tmp_path: Path, target: str) -> None:
    assert check_here(write(tmp_path / "m.onnx", "Relu", "Tanh"), Case(target)) is None


def test_a_model_that_is_refused(tmp_path: Path) -> None:
    failure = check_here(write(tmp_path / "m.onnx", "Relu", "NotAnOp"), Case())
    assert failure is not None
    assert failure.kind == "refused"


def test_an_exception_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr("fewbit.reduce.check.random_inputs", fail)
    failure = check_here(write(tmp_path / "m.onnx", "Relu"), Case())
    assert str(failure) == "internal error: KeyError: 'a fault'"


def test_results_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ones(*_: object) -> list[NDArray[np.float32]]:
        return [np.ones((2, 3), np.float32)]

    monkeypatch.setattr("fewbit.reduce.check.reference", ones)
    failure = check_here(write(tmp_path / "m.onnx", "Relu"), Case(INTERPRETER))
    assert failure is not None
    assert failure.kind == "wrong"
    assert "result 0 differs" in failure.what


def test_sizes_that_pytorch_does_not_take_are_not_tried(tmp_path: Path) -> None:
    class Fourth(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.select_scatter(x[0] * 2, 0, 3)

    shapes = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
    exporter: Any = torch.export
    exported = exporter.export(Fourth(), (torch.randn(5, 5),), dynamic_shapes=shapes)
    exporter.save(exported, tmp_path / "m.pt2")
    assert check_here(tmp_path / "m.pt2", Case(INTERPRETER)) is None


def test_the_process_is_started_anew(tmp_path: Path) -> None:
    model = write(tmp_path / "m.onnx", "Relu")
    with Checker() as check:
        late = check(model, Case(INTERPRETER, seconds=0.001))
        assert late is not None
        assert late.kind == "timeout"
        assert check(model, Case(INTERPRETER)) is None


def test_differences() -> None:
    one, nan = np.ones(3, np.float32), np.array([1, np.nan, np.inf], np.float32)
    assert difference([one], [one + 1e-6], 1e-4) is None
    assert difference([nan], [nan], 1e-4) is None
    assert difference([one], [nan], 1e-4) is not None
    assert difference([nan], [one], 1e-4) is not None
    assert difference([one], [one[:2]], 1e-4) is not None
    assert difference([one], [one, one], 1e-4) is not None
    assert difference([np.array([1, 2])], [np.array([1, 3])], 1.0) is not None


def test_noise_of_float32_is_no_error() -> None:
    """An allowance is made for what torch rounds itself, and for nothing beyond it."""
    small, zero = np.full(3, 7e-6, np.float32), np.zeros(3, np.float32)
    assert difference([small], [zero], 1e-4) is not None
    assert difference([small], [zero], 1e-4, [7e-6]) is None
    assert difference([small], [zero + 1], 1e-4, [7e-6]) is not None


def test_noise_is_measured_in_float64(tmp_path: Path) -> None:
    class Cancels(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return (x + 1e4) - 1e4 - x, x * 2

    x = torch.linspace(0, 1, 50)
    exporter: Any = torch.export
    exporter.save(exporter.export(Cancels(), (x,)), tmp_path / "m.pt2")
    results = [result.numpy() for result in Cancels()(x)]
    cancelled, plain = rounding_errors(tmp_path / "m.pt2", [x.numpy()], results)
    assert cancelled > 1e-5
    assert plain < 1e-7


def test_noise_is_measured_where_the_graph_has_constants_and_casts(tmp_path: Path) -> None:
    """Export writes beside a cast that its operand is float32, which in float64 it is not."""

    class Places(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + torch.tensor([0.0, 0.25, 0.5])
            ones = torch.nn.functional.cosine_similarity(x, x, dim=-1)
            return ones.argmax(0).to(torch.float32)

    x = torch.linspace(-1, 1, 60).reshape(20, 3)
    exporter: Any = torch.export
    exporter.save(exporter.export(Places(), (x,)), tmp_path / "m.pt2")
    (noise,) = rounding_errors(tmp_path / "m.pt2", [x.numpy()], [Places()(x).numpy()])
    assert noise >= 1
