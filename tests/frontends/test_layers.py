"""Layers that are found after an import, and what is left without a reader."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy


class Probed(nn.Module):
    """Attention whose query is a parameter: its projection is known before any input is."""

    def __init__(self) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.randn(1, 1, 16))
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        probe = self.probe.expand(x.shape[0], -1, -1)
        return self.attention(probe, x, x, need_weights=False)[0]


def test_weights_that_only_folded_ops_read_are_not_kept() -> None:
    model, x = Probed().eval(), torch.randn(2, 5, 16)
    program = fewbit.import_model(model, (x,))
    assert "attention.in_proj_weight" not in program.store
    (y,) = program.run(x.numpy())
    with torch.no_grad():
        torch.testing.assert_close(from_numpy(y), model(x), rtol=1e-5, atol=1e-5)


def test_results_without_a_reader_are_not_computed() -> None:
    class Unread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 300)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            F.softmax(self.unused(x), -1)
            return self.used(x)

    program = fewbit.import_model(Unread().eval(), (torch.randn(2, 4),))
    assert set(program.store) == {"used.weight", "used.bias"}
