"""What a trace found out about sizes is asserted by the program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.errors import InterpretError, OpenSizesWarning


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Part(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 2:5] + 0


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_the_range_that_was_asked_for() -> None:
    shapes = {"x": {0: Dim("batch", min=3, max=8)}}
    program = fewbit.import_model(Twice(), (torch.randn(4, 6),), dynamic_shapes=shapes)
    assert program.run(ones(8, 6))[0].shape == (8, 6)
    for batch in (1, 9):
        with pytest.raises(InterpretError, match="size 0 of 'x'"):
            program.run(ones(batch, 6))


def test_a_size_that_can_be_anything_is_not_checked() -> None:
    shapes = {"x": {0: Dim("batch")}}
    program = fewbit.import_model(Twice(), (torch.randn(4, 6),), dynamic_shapes=shapes)
    assert "assert" not in program.text()
    assert program.run(ones(1, 6))[0].shape == (1, 6)


class Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * int(x.shape[1])


def test_a_size_that_the_trace_fixed_is_static() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    program = fewbit.import_model(Fixed(), (torch.randn(3, 4, 6),), dynamic_shapes=shapes)
    assert program.signature.inputs[0].shape == (None, 4, 6)


def test_a_slice_is_as_long_as_there_are_elements() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    program = fewbit.import_model(Part(), (torch.randn(3, 4, 6),), dynamic_shapes=shapes)
    for size in (0, 1, 3, 5, 9):
        x = torch.randn(2, size, 6)
        np.testing.assert_array_equal(program.run(x.numpy())[0], Part()(x))


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0] // 2, 2, 6) + 1


@pytest.mark.parametrize("dim", [Dim("batch"), Dim("batch", max=8), Dim.AUTO, Dim.DYNAMIC])
def test_what_the_model_needs_is_checked(dim: object) -> None:
    """A dimension that was declared wider than what the model can do."""
    program = fewbit.import_model(Halves(), (torch.randn(4, 6),), dynamic_shapes={"x": {0: dim}})
    x = torch.randn(6, 6)
    np.testing.assert_array_equal(program.run(x.numpy())[0], Halves()(x))
    with pytest.raises(InterpretError, match=r"x\.shape\[0\]"):
        program.run(ones(5, 6))


def test_a_fixed_size_is_told() -> None:
    shapes = {"x": {0: Dim("batch"), 1: Dim("columns")}}
    with pytest.warns(OpenSizesWarning, match="size 1 of 'x' is 4"):
        program = fewbit.import_model(Fixed(), (torch.randn(3, 4, 6),), dynamic_shapes=shapes)
    assert program.signature.inputs[0].shape == (None, 4, 6)


WINDOWS = {
    "max_pool1d": nn.MaxPool1d(3, 2, 1),
    "max_pool1d_ceil": nn.MaxPool1d(3, 2, ceil_mode=True),
    "avg_pool1d": nn.AvgPool1d(3, 2, 1),
    "reflect": nn.ReflectionPad1d((2, 1)),
    "replicate": nn.ReplicationPad1d((1, 3)),
    "global_mean": nn.AdaptiveAvgPool1d(1),
    "conv": nn.Conv1d(3, 4, 3, stride=2),
    "resize": nn.Upsample(scale_factor=2.0),
    "linear_resize": nn.Upsample(scale_factor=2.0, mode="linear"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_a_dynamic_length(name: str) -> None:
    model = WINDOWS[name].eval()
    shapes = {"input": {0: Dim("batch"), 2: Dim("length")}}
    if name.endswith("resize"):
        shapes = {"input": {2: Dim("length")}}
    program = fewbit.import_model(model, (torch.randn(2, 3, 16),), dynamic_shapes=shapes)
    for batch, length in ((2, 16), (2, 7), (2, 3), (1, 9)):
        if name.endswith("resize") and batch == 1:
            continue
        x = torch.randn(batch, 3, length)
        expected = model(x).detach()
        np.testing.assert_allclose(program.run(x.numpy())[0], expected, rtol=1e-5, atol=1e-6)


class Padded(nn.Module):
    """Rows are filled up to whole windows, by Python's remainder of a negative number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[1]
        padded = nn.functional.pad(x, (0, 0, 0, -rows % 4))
        return padded.reshape(x.shape[0], padded.shape[1] // 4, 4, 6).amax(2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_remainder_has_the_sign_of_the_divisor(compiled: bool) -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    program = fewbit.import_model(Padded(), (torch.randn(2, 9, 6),), dynamic_shapes=shapes)
    run = fewbit.compile(program, "cpu").run if compiled else program.run
    for rows in (1, 4, 7, 9):
        x = torch.randn(2, rows, 6)
        np.testing.assert_array_equal(run(x.numpy())[0], Padded()(x))


class Rest(nn.Module):
    """Several open sizes, one of which is what is left."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x.reshape(x.shape[1], -1, 3))


@pytest.mark.parametrize("size", [(2, 4, 6), (5, 1, 6), (0, 2, 6)])
def test_a_size_that_is_left(size: tuple[int, ...]) -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    program = fewbit.import_model(Rest(), (torch.randn(3, 4, 6),), dynamic_shapes=shapes)
    x = torch.randn(size)
    for run in (program.run, fewbit.compile(program, "cpu").run):
        np.testing.assert_allclose(run(x.numpy())[0], Rest()(x), rtol=1e-6)
