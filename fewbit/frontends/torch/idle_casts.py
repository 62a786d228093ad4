"""Casts of a module's own parameters in `forward`, to the type that they have.

Routers of experts write `self.classifier = self.classifier.to(self.dtype)`, which changes nothing
where all is one type. torch.export cannot swap parameters while it traces, so such casts are
skipped; a cast that would change something is left to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast

import torch
from torch import nn

_apply = cast(Any, nn.Module)._apply


@contextmanager
def skip_idle_casts() -> Generator[None]:
    """Within the block, a conversion of a module that changes no type and no place is none."""
    cast(Any, nn.Module)._apply = _apply_if_needed
    try:
        yield
    finally:
        cast(Any, nn.Module)._apply = _apply


def _apply_if_needed(
    module: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
) -> nn.Module:
    tensors = chain(module.parameters(recurse), module.buffers(recurse))
    if all(_is_idle(tensor, convert) for tensor in tensors):
        return module
    return _apply(module, convert, recurse)


def _is_idle(tensor: torch.Tensor, convert: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    sample = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    result = convert(sample)
    return (result.dtype, result.device) == (sample.dtype, sample.device)
