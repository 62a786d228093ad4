# pyright: basic
"""Ops that are taken apart by decompositions of ours agree with PyTorch's, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torch.nn.functional import avg_pool1d, avg_pool2d

import fewbit
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function


def check(function: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Interpreted and compiled, a function of tensors is what PyTorch computes."""
    expected = function(*inputs).numpy()
    arrays = [x.numpy() for x in inputs]
    program = import_model(Function(function), inputs)
    for found in (program.run(*arrays)[0], fewbit.compile(program)(*arrays)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(3))
def test_roll(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 6, 3).tolist()
    shifts = rng.integers(-9, 10, 2).tolist()
    x = torch.from_numpy(rng.standard_normal(shape).astype(np.float32))
    check(lambda x: x.roll(shifts, (1, -1)) + x.roll(shifts[0], 0), x)
    check(lambda x: x.roll(shifts[0]), x)


def test_roll_of_the_windows_of_a_swin_transformer() -> None:
    x = torch.arange(2 * 7 * 7 * 3, dtype=torch.int32).reshape(2, 7, 7, 3)
    check(lambda x: x.roll((-3, -3), (1, 2)), x)


def test_roll_of_a_dynamic_size() -> None:
    model = Function(lambda x: x.roll(3, 1))
    program = import_model(model, (torch.randn(2, 7),), (({1: Dim("n")},),))
    compiled = fewbit.compile(program)
    for size in (2, 3, 11):
        x = torch.randn(2, size)
        np.testing.assert_array_equal(compiled(x.numpy()), model(x).numpy())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_fmod(seed: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 8, 2)
    x = (rng.standard_normal((rows, columns)) * 100).astype(dtype)
    y = (rng.choice([-1, 1], columns) * rng.uniform(1, 9, columns)).astype(dtype)
    check(torch.fmod, torch.from_numpy(x), torch.from_numpy(y))
    check(lambda x: torch.fmod(x, -3), torch.from_numpy(x))
    check(lambda x: torch.fmod(x, 2.5), torch.from_numpy(x))


def test_fmod_is_exact_and_knows_infinities() -> None:
    x = torch.tensor([1e30, -1e30, 3.0, -3.0, torch.inf, 5.0, torch.nan, 5.5])
    y = torch.tensor([0.3, 0.7, torch.inf, -torch.inf, 2.0, 0.0, 1.0, torch.nan])
    check(torch.fmod, x, y)
    least = torch.tensor([-(2**31), 2**31 - 1, -(2**31)], dtype=torch.int32)
    check(torch.fmod, least, torch.tensor([3, -7, 2**31 - 1], dtype=torch.int32))


@pytest.mark.parametrize("padding", [1, "same"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution_of_one_sample(rank: int, padding: int | str) -> None:
    convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1](4, 6, 3, padding=padding, groups=2)
    x = torch.randn(4, *(5, 7, 6)[:rank])
    expected = convolution(x).detach().numpy()
    program = import_model(convolution, (x,))
    for found in (program.run(x.numpy())[0], fewbit.compile(program)(x.numpy())):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "pool",
    [nn.MaxPool1d(2), nn.AvgPool1d(2, padding=1), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2),
     nn.AdaptiveAvgPool2d(2), nn.MaxPool3d(2), nn.AvgPool3d(2)],
    ids=lambda pool: type(pool).__name__,
)  # fmt: skip
def test_pool_of_one_sample(pool: nn.Module) -> None:
    rank = int(type(pool).__name__[-2])
    x = torch.randn(3, *(4, 6, 8)[:rank])
    program = import_model(pool, (x,))
    for found in (program.run(x.numpy())[0], fewbit.compile(program)(x.numpy())):
        np.testing.assert_allclose(found, pool(x).numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "pool",
    [nn.MaxPool1d(3, 2, ceil_mode=True), nn.MaxPool2d(3, 2, ceil_mode=True),
     nn.MaxPool3d(3, 2, ceil_mode=True), nn.AvgPool1d(3, 2, ceil_mode=True),
     nn.AvgPool2d(3, 2, ceil_mode=True)],
    ids=lambda pool: type(pool).__name__,
)  # fmt: skip
def test_windows_larger_than_the_image(pool: nn.Module) -> None:
    rank = int(type(pool).__name__[-2])
    x = torch.randn(1, 3, *(2, 5, 3)[:rank])
    program = import_model(pool, (x,))
    for found in (program.run(x.numpy())[0], fewbit.compile(program)(x.numpy())):
        np.testing.assert_allclose(found, pool(x).numpy(), rtol=1e-6, atol=1e-7)


def test_averages_of_integers_are_rounded_towards_zero() -> None:
    def averages(x: Tensor) -> Tensor:
        return torch.cat([avg_pool1d(x, 3, 2, 1), avg_pool2d(x, (1, 3), (1, 2), (0, 1))], -1)

    check(averages, torch.randint(-20, 20, (2, 3, 9)))


def test_a_written_tensor_keeps_its_type() -> None:
    def write(x: Tensor) -> Tensor:
        y = x > 0
        return y.select_scatter(y[0] * 2, 0, 1) ^ y.slice_scatter(x[:1], 0, 2, 3)

    check(write, torch.randint(-2, 3, (3, 4)))


def test_the_last_element_is_written_where_other_sizes_are_open() -> None:
    def write(x: Tensor) -> Tensor:
        y = x.clone()
        y[..., -1] = 2
        y[:, -2] += 1
        return y

    shapes = (({0: Dim("n"), 1: Dim("m", min=2)},),)
    program = import_model(Function(write), (torch.randn(3, 4, 2),), dynamic_shapes=shapes)
    compiled = fewbit.compile(program)
    for size in (2, 5):
        x = torch.randn(3, size, 2)
        for found in (program.run(x.numpy())[0], compiled(x.numpy())):
            np.testing.assert_array_equal(found, write(x).numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.var(0, unbiased=False),
        lambda x: x.std(-1, keepdim=True, unbiased=False),
        lambda x: torch.stack(torch.var_mean(x, correction=0)),
        lambda x: x.softmax(0),
    ],
)
def test_a_scalar_has_a_dimension(function: Callable[[Tensor], Tensor]) -> None:
    check(lambda x: function(x.sum()), torch.tensor([1.0, 2.0, -4.0]))


def test_hypotenuse() -> None:
    x = torch.tensor([0.0, 3.0, -3e38, 1e-30, float("inf"), float("nan")])
    y = torch.tensor([0.0, -4.0, 1e38, 1e-30, float("nan"), 1.0])
    program = import_model(Function(torch.hypot), (x, y))
    expected = torch.hypot(x, y).numpy()
    for found in (
        program.run(x.numpy(), y.numpy())[0],
        fewbit.compile(program)(x.numpy(), y.numpy()),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("function", [torch.maximum, torch.minimum])
def test_extremes_of_two_keep_what_is_not_a_number(function: Callable[..., Tensor]) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([nan, 1.0, nan, 2.0, -inf, inf, nan])
    y = torch.tensor([1.0, nan, nan, 1.0, nan, 3.0, inf])
    check(function, x, y)
    check(function, x[:, None], y)
    check(function, torch.arange(4), torch.tensor([3, 1, 2, 0]))


def test_a_scalar_with_more_dimensions_and_its_extremes() -> None:
    check(lambda x: x.max().reshape(1, 1), torch.randn(3))
    check(lambda x: x.max().amax(0) + x.min().amin(0), torch.randn(3))


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("shape", [(), (3,), (1,)])
def test_squeeze_of_dimensions_that_are_none(shape: tuple[int, ...], dim: int) -> None:
    """A scalar has none, and only those of size 1 are dropped."""
    x = torch.ones(shape)
    check(lambda x: x.squeeze((dim,)), x)
    check(lambda x: x.logsumexp(dim) * 0, x)


def test_layers_of_one_sample_are_quantized_as_those_of_a_batch() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
    x = torch.randn(3, 9, 8)
    one, batch = (
        fewbit.compile(import_model(model, (each,)), recipe="w8a8") for each in (x, x[None])
    )
    np.testing.assert_array_equal(one(x.numpy()), batch(x[None].numpy())[0])
    assert not np.array_equal(one(x.numpy()), model(x).detach().numpy())


@pytest.mark.parametrize("shapes", [((3, 5), (5,)), ((5,), (3, 5)), ((2, 1, 4), (3, 1))])
def test_choice_between_a_tensor_and_itself(shapes: tuple[tuple[int, ...], ...]) -> None:
    condition, x = (torch.randn(shape) for shape in shapes)
    check(lambda c, x: torch.where(c > 0, x, x), condition, x)


def test_what_is_padded_around_nothing_is_filled() -> None:
    x = torch.randn(2, 3, 1)
    check(lambda x: F.pad(x, (1, -1, 0, 2), value=2.0).mean(1), x)
    program = import_model(Function(lambda x: F.pad(x, (1, -1, 0, 2), value=2.0).mean(1)), (x,))
    np.testing.assert_array_equal(fewbit.compile(program, "iree-cpu")(x.numpy()), 2.0)
