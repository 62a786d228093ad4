"""Rows written at places that a run decides: eager, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.export import Dim

import fewbit
from fewbit.errors import InterpretError
from fewbit.ir.text import print_module

Write = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Writes(torch.nn.Module):
    def __init__(self, write: Write) -> None:
        super().__init__()
        self.write = write

    def forward(self, x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor):
        return self.write(x.clone(), places, rows)


def copied(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return x.index_copy_(2, places, rows)


def assigned(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x[:, :, places] = rows
    return x


def assigned_along_last(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x[..., places] = rows.transpose(2, 3)
    return x


def added(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return x.index_add_(2, places, rows)


def set_in_two(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x[:, places % 2, places] = rows.transpose(1, 2)[:, :, 0]
    return x


def set_apart(x: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x[:, places % 2, :, places] = rows.permute(2, 0, 1, 3)[:, :, 0]
    return x


WRITES = (copied, assigned, assigned_along_last, added, set_in_two, set_apart)


@pytest.mark.parametrize("places", [[3], [4, 0, 2]], ids=["one", "several"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_same_as_eager(write: Write, places: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 2, 5, 5, generator=generator)
    rows = torch.randn(1, 2, len(places), 5, generator=generator)
    given = (x, torch.tensor(places), rows)
    expected = Writes(write)(*given).numpy()
    program = fewbit.import_model(Writes(write), given)
    arrays = [tensor.numpy() for tensor in given]
    np.testing.assert_array_equal(program.run(*arrays)[0], expected)
    compiled = fewbit.compile(program)
    np.testing.assert_array_equal(compiled(*arrays), expected)
    np.testing.assert_array_equal(compiled(*arrays, threads=2), expected)


@pytest.mark.parametrize("write", [copied, assigned, set_apart], ids=lambda write: write.__name__)
def test_a_row_is_a_slice(write: Write) -> None:
    given = (torch.zeros(1, 2, 5, 5), torch.tensor([1]), torch.ones(1, 2, 1, 5))
    text = print_module(fewbit.import_model(Writes(write), given).module)
    assert "tensor.insert_slice" in text
    assert "scf.for" not in text
    assert "tm_tensor" not in text


def test_negative_places_count_from_the_end_where_they_do_in_eager() -> None:
    given = (torch.zeros(1, 2, 5, 3), torch.tensor([-2]), torch.ones(1, 2, 1, 3))
    program = fewbit.import_model(Writes(assigned), given)
    expected = Writes(assigned)(*given).numpy()
    arrays = [tensor.numpy() for tensor in given]
    np.testing.assert_array_equal(program.run(*arrays)[0], expected)


def test_any_number_of_rows() -> None:
    def given(n: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(1, 2, 7, 3), torch.randperm(7)[:n], torch.randn(1, 2, n, 3)

    n = Dim("n", max=7)
    shapes = {"x": None, "places": {0: n}, "rows": {2: n}}
    program = fewbit.import_model(Writes(copied), given(3), shapes)
    compiled = fewbit.compile(program)
    for count in (1, 2, 6):
        inputs = given(count)
        arrays = [tensor.numpy() for tensor in inputs]
        np.testing.assert_array_equal(compiled(*arrays), Writes(copied)(*inputs).numpy())


def test_places_outside_are_refused_or_the_nearest() -> None:
    given = (torch.zeros(1, 2, 5, 3), torch.tensor([1]), torch.ones(1, 2, 1, 3))
    program = fewbit.import_model(Writes(copied), given)
    x, _, rows = (tensor.numpy() for tensor in given)
    with pytest.raises(InterpretError, match="leaves its size of 5"):
        program.run(x, np.array([5]), rows)
    compiled = fewbit.compile(program)
    for place, nearest in ((5, 4), (10**9, 4), (-7, 0)):
        expected = x.copy()
        expected[:, :, nearest] = 1
        np.testing.assert_array_equal(compiled(x, np.array([place]), rows), expected)
