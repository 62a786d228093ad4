"""A model whose state is among its inputs and outputs, for formats that have no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call


class ExplicitState(nn.Module):
    """Takes buffers that a model updates behind its inputs, and gives them behind its outputs."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def forward(self, *given: Tensor) -> tuple[Any, ...]:
        own, state = given[: -len(self.names)], given[-len(self.names) :]
        buffers = {name: tensor.clone() for name, tensor in zip(self.names, state, strict=True)}
        return functional_call(self.model, buffers, own), *buffers.values()


def state_of(model: nn.Module, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return the buffers that a call changes, as they are before."""
    versions = {name: buffer._version for name, buffer in model.named_buffers()}
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model(*inputs)
    changed = [n for n, buffer in model.named_buffers() if buffer._version != versions[n]]
    with torch.no_grad():
        for name in changed:
            model.get_buffer(name).copy_(before[name])
    return {name: before[name] for name in changed}
