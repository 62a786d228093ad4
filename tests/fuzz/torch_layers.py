# pyright: basic, reportArgumentType=false, reportReturnType=false
"""Layers of PyTorch that random modules consist of, with sizes that fit a tensor or do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn


def layers(rng: np.random.Generator, x: Tensor) -> list[Callable[[], nn.Module]]:
    """Return what makes layers that may take such a tensor."""
    last = x.shape[-1] if x.dim() else 1
    channels = x.shape[1] if x.dim() > 1 else 1
    out, kernel = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    stride, pad, dilation = (
        int(rng.integers(1, 3)),
        int(rng.integers(0, 2)),
        int(rng.integers(1, 3)),
    )
    groups = channels if rng.random() < 0.3 else 1
    conv: dict[str, Any] = {
        "stride": stride,
        "padding": pad,
        "dilation": dilation,
        "groups": groups,
    }
    window = [int(n) for n in rng.integers(1, 6, 3)]
    step = [int(n) for n in rng.integers(1, 4, 3)]
    ceil = bool(rng.integers(2))
    return [
        lambda: nn.Linear(last, out), lambda: nn.LayerNorm(last), lambda: nn.RMSNorm(last),
        lambda: nn.Conv1d(channels, out * groups, kernel, **conv),
        lambda: nn.Conv2d(channels, out * groups, kernel, **conv),
        lambda: nn.ConvTranspose2d(channels, out, kernel, stride),
        lambda: nn.BatchNorm1d(channels), lambda: nn.BatchNorm2d(channels),
        lambda: nn.GroupNorm(1, channels), lambda: nn.InstanceNorm2d(channels),
        lambda: nn.MaxPool2d(kernel, stride, min(pad, kernel // 2)),
        lambda: nn.AvgPool2d(kernel, stride, min(pad, kernel // 2)),
        lambda: nn.MaxPool1d(kernel, stride), lambda: nn.AdaptiveAvgPool1d(2),
        lambda: nn.PReLU(), lambda: nn.PixelShuffle(1), lambda: nn.ChannelShuffle(1),
        lambda: nn.LSTM(last, out, batch_first=True), lambda: nn.GRU(last, out, bidirectional=True),
        lambda: nn.RNN(last, out, num_layers=2), lambda: _SelfAttention(last),
        lambda: nn.TransformerEncoderLayer(last, 1, 4, batch_first=True, norm_first=ceil),
        lambda: nn.Conv3d(channels, out, kernel, stride, pad),
        lambda: nn.ConvTranspose1d(channels, out, kernel, stride, pad, output_padding=stride - 1),
        lambda: nn.ConvTranspose2d(channels, out, kernel, stride, pad, dilation=dilation),
        lambda: nn.Conv2d(channels, out, tuple(window[:2]), tuple(step[:2]), padding_mode="circular", padding=1),
        lambda: nn.Conv1d(channels, out, window[0], padding="same", padding_mode="reflect"),
        lambda: nn.MaxPool2d(window[:2], step[:2], ceil_mode=ceil),
        lambda: nn.AvgPool2d(window[:2], step[:2], ceil_mode=ceil, count_include_pad=not ceil),
        lambda: nn.MaxPool3d(window, step, ceil_mode=ceil), lambda: nn.AvgPool3d(kernel, stride),
        lambda: nn.AvgPool1d(window[0], step[0], window[0] // 2, ceil_mode=ceil),
        lambda: nn.MaxPool2d(kernel, stride, dilation=dilation), lambda: nn.LPPool2d(2, kernel, stride),
        lambda: nn.AdaptiveMaxPool2d((window[0], window[1])), lambda: nn.AdaptiveAvgPool2d((None, window[0])),
        lambda: nn.AdaptiveAvgPool3d(window[0]), lambda: nn.AdaptiveMaxPool1d(window[0]),
        lambda: nn.BatchNorm3d(channels), lambda: nn.InstanceNorm1d(channels, affine=True),
        lambda: nn.GroupNorm(channels, channels), lambda: nn.LocalResponseNorm(3),
        lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        lambda: nn.ReflectionPad2d(1), lambda: nn.ZeroPad2d((0, 1, 2, 0)), lambda: nn.Flatten(0, 1),
        lambda: nn.Embedding(8, out), lambda: nn.GLU(), lambda: nn.Softmax2d(), lambda: nn.Softmin(-1),
        lambda: nn.Bilinear(last, last, out), lambda: nn.LayerNorm(tuple(x.shape[1:])),
        lambda: nn.Sequential(nn.Linear(last, 2 * out), nn.GELU(), nn.Linear(2 * out, last)),
    ]  # fmt: skip


class _SelfAttention(nn.Module):
    """An attention of a tensor to itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2 if width % 2 == 0 else 1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]
