"""Modules that cast their own parameters while they run."""

from __future__ import annotations

import torch
from torch import nn

from fewbit.frontends import import_model
from tests.frontends.torch.agreement import assert_agrees


class Router(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.classifier = nn.Linear(4, 3)
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.classifier = self.classifier.to(self.dtype)
        return self.classifier(x.to(self.dtype)).softmax(-1)


def test_a_cast_to_the_same_type_changes_nothing() -> None:
    router = Router(torch.float32).eval()
    assert_agrees(router, torch.randn(2, 4))


def test_conversions_are_as_before_afterwards() -> None:
    import_model(Router(torch.float32).eval(), (torch.randn(2, 4),))
    assert nn.Linear(4, 3).to(torch.float64).weight.dtype is torch.float64
