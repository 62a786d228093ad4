"""A network with a layer of every width, all reading one input: one compilation tries them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.program.program import Program

WIDTHS = ("1", "1.58", "2", "3", "4", "5", "6", "7", "8")


class EveryWidth(nn.Module):
    """One layer for each width; what each of them gives is an output."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(layer(x) for layer in self.layers)


def linear(inputs: int = 61, outputs: int = 53) -> Program:
    return _quantized([nn.Linear(inputs, outputs, bias=False) for _ in WIDTHS], (5, inputs))


def convolutions() -> Program:
    """Odd sizes, and each width with another stride, padding, dilation or group."""
    forms: list[dict[str, Any]] = [
        {"stride": (2, 1)}, {"padding": (1, 2)}, {"dilation": 2, "padding": 2}, {"groups": 7},
        {"groups": 7, "stride": 2, "padding": 1}, {}, {"padding": 1}, {"stride": 3}, {"dilation": (1, 3)},
    ]  # fmt: skip
    layers = [
        nn.Conv2d(7, 21 if form.get("groups") else 13, (3, 2), bias=False, **form) for form in forms
    ]
    return _quantized(layers, (2, 7, 11, 9))


def _quantized(layers: Sequence[nn.Module], shape: tuple[int, ...]) -> Program:
    manual_seed(0)
    model = EveryWidth(layers).eval()
    recipe = {
        "version": 1,
        "layers": {f"layers.{i}": f"w{width}a8" for i, width in enumerate(WIDTHS)},
    }
    return fewbit.quantize(fewbit.import_model(model, (torch.randn(shape),)), recipe)
