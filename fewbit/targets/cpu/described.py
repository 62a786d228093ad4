"""Ports and weights of a compiled program, as a manifest has them."""

from __future__ import annotations

from fewbit.artifact import Constant, Tensor
from fewbit.targets.cpu.interface import Port
from fewbit.targets.cpu.weights import Placed


def described_port(port: Port) -> Tensor:
    return Tensor(name=port.name, shape=port.shape, element=port.element, updates=port.updates)


def described_weight(placed: Placed) -> Constant:
    array = placed.array
    return Constant(
        name=placed.name, offset=placed.offset, shape=array.shape, dtype=str(array.dtype)
    )
