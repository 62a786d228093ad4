"""Ports and weights of a compiled program, as a manifest has them."""

from __future__ import annotations

from fewbit.codegen.interface import Port
from fewbit.program.artifact import Constant, Tensor
from fewbit.program.weight_image import Placed


def manifest_port(port: Port) -> Tensor:
    return Tensor(name=port.name, shape=port.shape, element=port.element, updates=port.updates)


def manifest_weight(placed: Placed) -> Constant:
    array = placed.array
    return Constant(
        name=placed.name, offset=placed.offset, shape=array.shape, dtype=str(array.dtype)
    )
