"""Functions of torch that a program has one op for: rotations, and the halves of bytes.

Traced as what they do, they would be dozens of loops, and a matmul could not see that it may read
bytes where it is given floats. `frontends/torch/language_ops.py` says what they become.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fewbit.numerics.widths import Width
from fewbit.quant.torch.fake_quant import rotate as rotate_blocks

ROTATE, LOW, HIGH = "fewbit::rotate_blocks", "fewbit::low_half", "fewbit::high_half"

_torch_library: Any = torch.library  # its functions are half typed
_library = _torch_library.Library("fewbit", "FRAGMENT")
_library.define("rotate_blocks(Tensor x, int block) -> Tensor")
_library.define("low_half(Tensor x) -> Tensor")
_library.define("high_half(Tensor x) -> Tensor")


def rotate(x: Tensor, block: int | None) -> Tensor:
    """Return blocks of the last dimension times a Hadamard matrix; without a block, the tensor."""
    return x if block is None else torch.ops.fewbit.rotate_blocks(x, block)


def low_half(x: Tensor) -> Tensor:
    """Return the lower half of each byte, an integer with a sign, as float."""
    return torch.ops.fewbit.low_half(x)


def high_half(x: Tensor) -> Tensor:
    """Return the upper half of each byte, an integer with a sign, as float."""
    return torch.ops.fewbit.high_half(x)


def join_halves(low: Tensor, high: Tensor) -> Tensor:
    """Return bytes of two integers of 4 bits each."""
    return (low & 15) | (high << Width.of(4).bits)


@_torch_library.impl(_library, "rotate_blocks", "CompositeExplicitAutograd")
def _rotate(x: Tensor, block: int) -> Tensor:
    return rotate_blocks(x, block)


@_torch_library.impl(_library, "low_half", "CompositeExplicitAutograd")
def _low(x: Tensor) -> Tensor:
    return ((x << 4) >> 4).float()


@_torch_library.impl(_library, "high_half", "CompositeExplicitAutograd")
def _high(x: Tensor) -> Tensor:
    return (x >> 4).float()


@_torch_library.register_fake("fewbit::rotate_blocks")
def _fake_rotate(x: Tensor, block: int) -> Tensor:
    return torch.empty_like(x)


@_torch_library.register_fake("fewbit::low_half")
@_torch_library.register_fake("fewbit::high_half")
def _fake_half(x: Tensor) -> Tensor:
    return torch.empty_like(x, dtype=torch.float32)
