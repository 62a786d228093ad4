"""Fourier transforms, as matmuls with tables of sines and cosines; and mel filters."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import from_numpy
from fewbit.frontends.onnx.kinds import FLOAT, held_in
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, known, outside_trace


@op("DFT", tensors=1)
def dft(call: Call, x: Tensor) -> Tensor:
    axis = call.whole(2)[0] if call.has(2) else call.attr("axis", 1 if call.version < 20 else -2)
    axis = axis % x.ndim
    inverse, onesided = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    have = int(x.shape[axis])
    natural = 2 * (have - 1) if inverse and onesided else have
    length = call.whole(1)[0] if call.has(1) else natural
    if inverse and onesided:
        return _real_inverse(call, x, axis, length)
    kept = length // 2 + 1 if onesided else length
    x = _fit_length(x, axis, length)
    return _transform(call, x, axis, length, kept, inverse)


def _fit_length(x: Tensor, axis: int, length: int) -> Tensor:
    """Cut, or lengthened by zeros."""
    have = int(x.shape[axis])
    if have < length:
        return F.pad(x, [0, 0] * (x.ndim - 1 - axis) + [0, length - have])
    return x.narrow(axis, 0, length)


def _transform(call: Call, x: Tensor, axis: int, length: int, kept: int, inverse: bool) -> Tensor:
    cosines, sines = _tables(call, length, kept, inverse, x.dtype)
    real = x.select(-1, 0).movedim(axis, -1)
    if x.shape[-1] == 1:
        parts = torch.matmul(real, cosines), torch.matmul(real, sines)
    else:
        imaginary = x.select(-1, 1).movedim(axis, -1)
        parts = (
            torch.matmul(real, cosines) - torch.matmul(imaginary, sines),
            torch.matmul(real, sines) + torch.matmul(imaginary, cosines),
        )
    return torch.stack([part.movedim(-1, axis) for part in parts], -1)


def _tables(
    call: Call, length: int, kept: int, inverse: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Tables [length, kept] of cosines and of sines with their sign."""
    with outside_trace():
        turns = np.outer(np.arange(length), np.arange(kept)) % length
        angles = 2 * np.pi * turns / length * (1 if inverse else -1)
        factor = 1 / length if inverse else 1.0
        tables = [from_numpy(run(angles) * factor).to(dtype) for run in (np.cos, np.sin)]
    return call.constant(tables[0], "cosines"), call.constant(tables[1], "sines")


def _real_inverse(call: Call, x: Tensor, axis: int, length: int) -> Tensor:
    """The inverse transform of half a spectrum, whose other half is its mirror image."""
    half = length // 2 + 1
    x = _fit_length(x, axis, half)
    with outside_trace():
        turns = np.outer(np.arange(half), np.arange(length)) % length
        twice = np.full((half, 1), 2.0)
        twice[0] = 1.0
        if length % 2 == 0:
            twice[-1] = 1.0
        angles = 2 * np.pi * turns / length
        tables = [from_numpy(twice * run(angles) / length).to(x.dtype) for run in (np.cos, np.sin)]
    cosines, sines = call.constant(tables[0], "cosines"), call.constant(tables[1], "sines")
    real, imaginary = (x.select(-1, i).movedim(axis, -1) for i in range(2))
    result = torch.matmul(real, cosines) - torch.matmul(imaginary, sines)
    return result.movedim(-1, axis).unsqueeze(-1)


@op("STFT", tensors=1)
def stft(call: Call, signal: Tensor) -> Tensor:
    if signal.ndim == 2:  # older exporters leave out that it is real
        signal = signal.unsqueeze(-1)
    step = call.whole(1)[0]
    window = call.optional(2)
    length = call.whole(3)[0] if call.has(3) else int(window.shape[0])  # pyright: ignore
    onesided = bool(call.attr("onesided", 1)) and signal.shape[-1] == 1
    count = (int(signal.shape[1]) - length) // step + 1
    frames = torch.stack([signal.narrow(1, i * step, length) for i in range(count)], 1)
    if window is not None:
        frames = frames * window.reshape([1, 1, -1, 1])
    kept = length // 2 + 1 if onesided else length
    return _transform(call, frames, 2, length, kept, False)


@op("MelWeightMatrix", tensors=0)
def mel_weight_matrix(call: Call) -> Known:
    """Triangles over the lines of a spectrum, at equal distances on the mel scale."""
    bins, length, rate = (call.whole(i)[0] for i in range(3))
    low, high = (2595 * np.log10(1 + call.numbers(i)[0] / 700) for i in (3, 4))
    mel = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    edges = np.floor((length + 1) * (700 * (10 ** (mel / 2595) - 1)) / rate).astype(np.int64)
    lines = np.arange(length // 2 + 1)[:, None]
    left, center, right = (edges[i : i + bins][None] for i in range(3))
    rising = (lines - left) / np.maximum(center - left, 1)
    falling = (right - lines) / np.maximum(right - center, 1)
    weights = np.where((lines >= left) & (lines < center), rising, 0.0)
    weights = np.where((lines >= center) & (lines < right), falling, weights)
    weights = np.where(lines == center, 1.0, weights)
    kind = call.attr("output_datatype", FLOAT)
    return known(weights.astype(str(held_in(kind)).removeprefix("torch.")), kind)
