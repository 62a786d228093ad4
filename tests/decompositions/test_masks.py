"""Elements that a mask chooses: some, all, none; alone, and what is computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.errors import UnsupportedError
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function, TensorFunction

WEIGHT = torch.linspace(-1, 1, 20).reshape(4, 5)

FUNCTIONS: dict[str, TensorFunction] = {
    "nonzero": lambda x: torch.nonzero(x),
    "nonzero_scalar": lambda x: torch.nonzero(x.sum()),
    "nonzero_columns": lambda x: torch.nonzero(x > 0, as_tuple=True),
    "mask": lambda x: x[x > 0],
    "integers": lambda x: torch.nonzero((x > 0).to(torch.int32)),
    "rows_matmul": lambda x: x[x[:, 0] > 0] @ WEIGHT,
    "columns_softmax": lambda x: torch.softmax(x[:, x[0] > 0], 1),
    "mask_and_number": lambda x: x[x[:, 0] > 0, 1],
    "masked_select": lambda x: torch.masked_select(x, x[0] > 0),
    "sum": lambda x: (x[x > 0].sum(), x[x > 0].mean()),
    "softmax": lambda x: torch.softmax(x[x > 0], 0),
    "both": lambda x: torch.cat([x[x > 0], x[x < 0]]) * 2,
    "one_mask_twice": lambda x: x[x > 0] + (2 * x)[x > 0],
    "all_pairs": lambda x: x[x[:, 0] > 0] @ x[x[:, 0] > 0].T,
    "first_of_them": lambda x: torch.nonzero(x)[:2],
    "mask_of_mask": lambda x: (lambda y: y[y < 1])(x[x > 0]),
    "counted": lambda x: x.reshape(-1)[: (x > 0).sum()],
}

QUICK = (
    "nonzero_scalar",
    "mask",
    "rows_matmul",
    "masked_select",
    "sum",
    "softmax",
    "first_of_them",
)


def check(function: TensorFunction, dynamic: bool, *inputs: Tensor) -> None:
    """Compare PyTorch, the interpreter and compiled code, in one and in several threads."""
    model = Function(function).eval()
    shapes = {"inputs": ({0: torch.export.Dim("n")},)} if dynamic else None
    program = import_model(model, inputs[:1], shapes)
    compiled = fewbit.compile(program).runner
    for x in inputs:
        wanted = [each.numpy() for each in tree_leaves(model(x))]
        results = [program.run(x.numpy())]
        results += [compiled(x.numpy(), threads=threads) for threads in (1, 3)]
        for result in results:
            for a, b in zip(result, wanted, strict=True):
                assert np.shape(a) == b.shape
                np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def inputs(rows: int = 3) -> tuple[Tensor, ...]:
    x = torch.linspace(-2, 3, rows * 4).reshape(rows, 4)
    x[1, 2] = 0
    return x, x.abs() + 0.5, -x.abs(), torch.zeros(rows, 4)


@pytest.mark.parametrize("name", QUICK)
def test_fixed_sizes(name: str) -> None:
    check(FUNCTIONS[name], False, *inputs())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in QUICK])
def test_more_with_fixed_sizes(name: str) -> None:
    check(FUNCTIONS[name], False, *inputs())


def test_beside_dynamic_sizes() -> None:
    check(FUNCTIONS["both"], True, *inputs(), *inputs(7))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nonzero", "mask", "rows_matmul", "mask_of_mask"])
def test_more_beside_dynamic_sizes(name: str) -> None:
    check(FUNCTIONS[name], True, *inputs(), *inputs(7))


def test_memory_is_planned_by_the_bound() -> None:
    """It grows with the mask, whatever that chooses."""
    model = Function(lambda x: torch.softmax(x[x > 0], 0))
    program = import_model(model, (torch.ones(8),), {"inputs": ({0: torch.export.Dim("n")},)})
    runner = fewbit.compile(program).runner
    few, many = (np.zeros(n, np.float32) for n in (8, 80))
    assert runner.arena_bytes(few) == runner.arena_bytes(few + 1)
    assert 9 < (runner.arena_bytes(many) - 64) / (runner.arena_bytes(few) - 64) <= 10


@pytest.mark.slow
def test_other_targets() -> None:
    """IREE allocates what it finds; where all memory is planned, only outputs are refused."""
    chosen, total = Function(lambda x: x[x > 0]), Function(lambda x: x[x > 0].sum())
    x = np.array([1, -1, 2.5, 0], np.float32)
    programs = [import_model(each, (from_numpy(x),)) for each in (chosen, total)]
    (found,) = fewbit.compile(programs[0], "iree-cpu").runner(x)
    np.testing.assert_array_equal(found, x[x > 0])
    artifact = fewbit.compile(programs[1], "vexii")
    (found,) = artifact.runner(x)
    np.testing.assert_array_equal(found, x[x > 0].sum())
    with pytest.raises(UnsupportedError, match="only a run knows output0_dim0"):
        fewbit.compile(programs[0], "vexii")


def test_sizes_that_need_not_be_equal_are_refused() -> None:
    program = import_model(Function(lambda x: x[x > 1] + x[x < 0]), (torch.ones(4),))
    with pytest.raises(UnsupportedError, match="must be equal") as raised:
        fewbit.compile(program)
    assert "one mask" in str(raised.value.hint)


def test_size_without_bound_is_refused() -> None:
    def grow(x: Tensor) -> Tensor:
        size: Any = x[0].to(torch.int64).item()
        return torch.ones([size])

    program = import_model(Function(grow), (torch.ones(4),))
    (result,) = program.run(np.full(4, 3, np.float32))
    assert result.shape == (3,)
    with pytest.raises(UnsupportedError, match="has no bound"):
        fewbit.compile(program)
