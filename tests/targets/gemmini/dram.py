"""Buffers in DRAM for a stream, and the model run on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.memory import rows_of
from fewbit.simulators.gemmini.model import Model

Array = np.ndarray[Any, Any]


def run_stream(
    stream: Sequence[Command], y: Array, hardware: Hardware | None = None, **buffers: Array
) -> Model:
    """Run a stream on a fresh model; the result is written to `y`."""
    places: dict[str, int] = {}
    size = 0x1000
    for name, array in (*buffers.items(), ("y", y)):
        places[name] = size
        size += -(-array.nbytes // 64) * 64 + 64
    memory = np.zeros(size, np.uint8)
    for name, array in buffers.items():
        flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        rows_of(memory, places[name], 1, 0, flat.size)[0] = flat
    model = Model(hardware)
    model.run_all([command.bind(places) for command in stream], memory)
    raw = rows_of(memory, places["y"], 1, 0, y.nbytes)[0].copy()
    y[...] = raw.view(y.dtype).reshape(y.shape)
    return model


def some(rng: np.random.Generator, *shape: int, low: int = -128, high: int = 128) -> Array:
    return rng.integers(low, high, shape, dtype=np.int8)


def requantized(sums: Array, scale: float, relu: bool = False) -> Array:
    out = np.clip(np.rint(sums.astype(np.float32) * np.float32(scale)), -128, 127)
    return np.maximum(out, 0 if relu else -128).astype(np.int8)
