"""Exports of ours with dynamic sizes: what `torch.onnx.export` writes, run at several sizes.

Each is imported as it is. The sizes at which it is run include 1, and others than those of the
export.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.export import Dim

from fewbit.base.typed_torch import manual_seed
from tests.strangers.onnx_files import make_inputs
from tests.strangers.stranger import OnnxCase, Stranger
from tests.strangers.weights import settle

Dims = dict[int, Any]


@dataclass(frozen=True)
class DynamicExport(Stranger):
    """A module, the shape that it is exported at, its dynamic dimensions, and shapes to run."""

    make: Callable[[], nn.Module] = nn.Identity
    shape: tuple[int, ...] = ()
    dims: tuple[tuple[int, str], ...] = ()
    runs: tuple[str, ...] = ()
    tokens: bool = False

    def build(self, folder: Path) -> OnnxCase:
        manual_seed(0)
        model = self.make()
        samples = [(self._sample((4, *self.shape[1:])),) for _ in range(3)]
        settle(model, samples)
        path = folder / "model.onnx"
        dims = {axis: Dim(name, min=1) for axis, name in self.dims}
        export = cast(Any, torch.onnx).export
        export(
            model, (self._sample(self.shape),), path, input_names=["x"], output_names=["y"],
            dynamic_shapes=(dims,), verbose=False,
        )  # fmt: skip
        rng = np.random.default_rng(0)
        return OnnxCase(path, tuple(self._inputs(run, rng) for run in self.runs))

    def _sample(self, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randint(0, 50, shape) if self.tokens else torch.randn(shape)

    def _inputs(self, run: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if not self.tokens:
            return make_inputs(f"x={run}", rng)
        return {"x": rng.integers(0, 50, [int(size) for size in run.split("x")])}


class Convolutions(nn.Module):
    """Strided convolutions over a sequence, as of keyword spotters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(8, 16, 5, stride=2), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 16, 3, stride=2)
        )  # fmt: skip
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).mean(2))


class Encoder(nn.Module):
    """A transformer's encoder, with an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embedding(x))


class Images(nn.Module):
    """Convolutions and pooling over images of any size, then an average."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(16, 4),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class UpAndDown(nn.Module):
    """A small U-Net: what is pooled is resized to where it came from."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.last = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x).relu()
        up = nn.functional.interpolate(self.down(first), size=first.shape[2:], mode="bilinear")
        return self.last(torch.cat([first, up], 1))


class Nearest(nn.Module):
    """A resize by a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(nn.functional.interpolate(self.first(x).relu(), scale_factor=2.0))


class Recurrent(nn.Module):
    """An LSTM or GRU over a sequence of any length."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU], bidirectional: bool = False) -> None:
        super().__init__()
        self.recurrent = kind(8, 12, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(24 if bidirectional else 12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(x)[0])


class Reflected(nn.Module):
    """Reflect padding in front of a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(4, 8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(nn.functional.pad(x, (2, 2), mode="reflect")).tanh()


class Squeezed(nn.Module):
    """A mean and a squeeze beside two dynamic sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.layer(x).squeeze(-1).softmax(1)
        return (x * scores.unsqueeze(-1)).sum(1)


def _export(
    name: str,
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    dims: dict[int, str],
    *runs: str,
    tokens: bool = False,
) -> DynamicExport:
    return DynamicExport("dynamic", name, make, shape, tuple(dims.items()), runs, tokens)


EXPORTS = [
    _export("conv1d_length", Convolutions, (1, 8, 40), {2: "t"}, "1x8x40", "1x8x57", "1x8x11"),
    _export("conv1d_batch_length", Convolutions, (2, 8, 40), {0: "b", 2: "t"}, "1x8x40", "3x8x57"),
    _export("encoder_sequence", Encoder, (1, 6), {1: "t"}, "1x6", "1x1", "1x13", tokens=True),
    _export("encoder_batch_sequence", Encoder, (2, 6), {0: "b", 1: "t"}, "1x1", "3x9", tokens=True),
    _export("images", Images, (2, 3, 32, 32), {0: "b", 2: "h", 3: "w"}, "1x3x32x32", "3x3x20x44"),
    _export("resize_to_size", UpAndDown, (1, 3, 32, 32), {2: "h", 3: "w"}, "1x3x32x32", "1x3x18x26"),
    _export("resize_by_factor", Nearest, (1, 3, 16, 16), {2: "h", 3: "w"}, "1x3x16x16", "1x3x5x9"),
    _export("lstm_steps", lambda: Recurrent(nn.LSTM), (1, 10, 8), {1: "t"}, "1x10x8", "1x1x8",
            "1x23x8"),
    _export("gru_both_ways", lambda: Recurrent(nn.GRU, bidirectional=True), (2, 10, 8),
            {0: "b", 1: "t"}, "1x10x8", "3x17x8"),
    _export("reflect_pad", Reflected, (1, 4, 20), {2: "t"}, "1x4x20", "1x4x33"),
    _export("weighted_mean", Squeezed, (2, 6, 8), {0: "b", 1: "t"}, "1x6x8", "4x1x8", "3x11x8"),
]  # fmt: skip
