"""Branches on tensors that follow from sizes and parameters are taken; those on data, refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import manual_seed
from fewbit.decompositions.constant_reads import record_reads
from fewbit.errors import UnsupportedError
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function, assert_agrees


class Padded(nn.Module):
    """Masks what its patches pad, if there is any: that depends on the size of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.limit = nn.Buffer(torch.tensor(6))

    def forward(self, x: Tensor) -> Tensor:
        padding = torch.arange(8) >= torch.full([8], x.shape[1])
        if padding.any():
            x = nn.functional.pad(x, (0, 0, 0, int(padding.sum())))
            x = x.masked_fill(padding[None, :, None], 0.0)
        if x.shape[1] > int(self.limit):
            x = x * 2
        return self.linear(x)


@pytest.mark.parametrize("rows", [5, 8])
def test_a_branch_that_no_input_has_a_part_in(rows: int) -> None:
    manual_seed(0)
    assert_agrees(Padded().eval(), torch.randn(2, rows, 4))


def test_reads_are_told_apart() -> None:
    def function(x: Tensor) -> Tensor:
        ones = torch.ones_like(x)
        mixed = torch.zeros(3)
        mixed += x
        sizes = (bool(ones.all()), x.sum().item(), mixed.sum().item(), int(torch.arange(3).max()))
        return x * sizes[-1]

    reads = record_reads(Function(function), (torch.ones(3),), {})
    assert [read.is_constant for read in reads] == [True, False, False, True]
    assert reads[-1].value == 2


def test_a_branch_on_data_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2 if torch.arange(3).any() else x
        return y + 1 if y.sum() > 0 else y

    with pytest.raises(UnsupportedError, match="cannot trace") as caught:
        import_model(Function(function), (torch.ones(3),))
    assert "torch.cond" in str(caught.value.hint)


def test_a_buffer_that_calls_change_is_no_constant() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = nn.Buffer(torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * 2 if self.calls > 3 else x

    assert list(record_reads(Counting(), (torch.ones(3),), {})) == []
    with pytest.raises(UnsupportedError):
        import_model(Counting(), (torch.ones(3),))
