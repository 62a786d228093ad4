"""Cycles of layers on VexiiRiscv cores with MiCo's dot products: `docs/cycles.md` says how."""

from fewbit.cost.cycles.estimate import CACHES, Estimate, cycles
from fewbit.cost.cycles.instructions import instruction_cycles
from fewbit.cost.cycles.shapes import Conv2d, Linear, Matmul, Pool, Shape

__all__ = [
    "CACHES",
    "Conv2d",
    "Estimate",
    "Linear",
    "Matmul",
    "Pool",
    "Shape",
    "cycles",
    "instruction_cycles",
]
