"""Random weights with sane statistics.

Nobody's trained weights are here, and those of a fresh model hide faults: heads and layer scales
that begin at zero make whole branches vanish, matrices with a deviation of 0.02 leave nothing but
the residual, and batch norms that have seen no data let activations grow without bound. So what is
constant becomes random, small matrices are scaled to keep the size of what passes through them, and
batch norms see a few batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import nn

SMALL = 0.4
"""A deviation below this share of `1 / sqrt(fan in)` makes a layer's output vanish."""


def settle(model: nn.Module, samples: Sequence[tuple[torch.Tensor, ...]]) -> None:
    """Give a model weights and statistics under which everything in it has an effect."""
    model.eval()
    with torch.no_grad():
        for module in model.modules():
            _scale_matrix(module)
        for parameter in model.parameters():
            _randomize_constant(parameter)
        _settle_batch_norms(model, samples)


def _scale_matrix(module: nn.Module) -> None:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, nn.Parameter) or weight.dim() < 2 or isinstance(module, nn.Embedding):
        return
    fan_in = weight[0].numel() if type(module).__name__ != "Conv1D" else weight.shape[0]
    deviation = float(weight.std()) * fan_in**0.5
    if 0 < deviation < SMALL:
        weight.mul_(1 / deviation)


def _randomize_constant(parameter: nn.Parameter) -> None:
    """Replace a parameter whose elements are all the same: zeros, ones, tiny layer scales."""
    if not parameter.is_floating_point() or parameter.numel() < 2:
        return
    first = float(parameter.flatten()[0])
    if not bool((parameter == first).all()):
        return
    if parameter.dim() >= 2 and first == 0 and parameter[0].numel() > 1:
        parameter.normal_(std=parameter[0].numel() ** -0.5)
    elif abs(first) < 0.01:
        parameter.normal_(std=0.2)
    else:
        parameter.mul_(1 + 0.2 * torch.randn_like(parameter))


def _settle_batch_norms(model: nn.Module, samples: Sequence[tuple[torch.Tensor, ...]]) -> None:
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]  # pyright: ignore[reportPrivateUsage]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        cast(Any, norm).momentum = None  # the mean of all batches
        norm.train()
    for sample in samples:
        model(*sample)
    model.eval()
