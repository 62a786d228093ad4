"""What counts as a layer when a model's dataflow is looked at.

A layer is a node of the dataflow: what it does inside is its own business, so that a quantized
layer (a subclass of `nn.Linear` or `nn.Conv2d` that rounds weights and activations) is the same
node as the float layer that it stands for. Normalizations are recognized by what they have, one
weight for each channel, because every other LLaMa brings an RMSNorm class of its own.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from torch import nn

from fewbit.base.typed_torch import own_parameters

Layer: TypeAlias = Any
"""An nn.Module; torch's types say nothing useful of its attributes."""

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
NORMS = (nn.LayerNorm, nn.RMSNorm)
TRANSPARENT = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout)
"""Modules that return their input, the very tensor, in eval mode."""


def is_layer(module: nn.Module) -> bool:
    return isinstance(module, (*WEIGHTED, *BATCH_NORMS)) or is_norm(module)


def is_norm(module: nn.Module) -> bool:
    """A LayerNorm or RMSNorm, or a module of the user's that has the looks of one."""
    if isinstance(module, NORMS):
        return True
    of_torch = type(module).__module__.startswith("torch.nn.modules.")
    if of_torch or isinstance(module, (*WEIGHTED, *BATCH_NORMS)) or next(module.children(), None):
        return False
    parameters = own_parameters(module)
    weight = parameters.get("weight")
    return parameters.keys() <= {"weight", "bias"} and weight is not None and weight.ndim == 1


def output_rank(layer: Layer) -> int:
    """The rank of a batch of outputs: samples, channels, and space where there is any."""
    return 2 + _spatial_rank(layer)


def channel_axis(layer: Layer) -> int:
    """Return where the output's channels are, counted from the end, batched or not."""
    return -1 - _spatial_rank(layer)


def channels_of(layer: Layer) -> int:
    return layer.weight.shape[0]


def _spatial_rank(layer: nn.Module) -> int:
    if isinstance(layer, nn.Conv1d):
        return 1
    return 2 if isinstance(layer, nn.Conv2d) else 0
