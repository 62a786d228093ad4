"""Which kernel computes a layer, now that its sizes are known.

The settings are those that were measured to be best for a shape, where the table has it; nothing is
tuned here. Otherwise the first of the families that can compute it, in the order of their speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution, Epilogue
from fewbit.kernels.cuda.family import Config, Family
from fewbit.kernels.cuda.max_pool import max_pool_plan
from fewbit.kernels.cuda.plan import Plan
from fewbit.targets.cuda.call_layers import Layer
from fewbit.targets.cuda.memory import Memory

Array = np.ndarray[Any, Any]

FAMILIES = ("wgmma", "patch", "mma", "tiled+both", "depthwise")
"""Those that finish a sum themselves."""


@dataclass(frozen=True)
class Call:
    """A layer with its sizes, and the kernel that was chosen for it."""

    problem: Convolution
    family: str
    config: Config
    operands: dict[str, Memory]
    layer: str = ""

    def weight(self, weight: Array) -> Array:
        """The filters as the kernel reads them."""
        if self.family != "depthwise":
            return weight
        wide = weight.astype(np.int32 if self.problem.dtype == "i8" else np.float32)
        return np.ascontiguousarray(np.moveaxis(wide[..., 0], 0, -1))

    def plan(self, arch: Arch) -> Plan:
        return _plan(self.problem, self.family, tuple(self.config.items()), arch)


@lru_cache(256)
def _plan(
    problem: Convolution, family: str, config: tuple[tuple[str, int], ...], arch: Arch
) -> Plan:
    """Layers of the same shape have the same code."""
    if family == "max_pool":
        return max_pool_plan(problem, arch)
    return LADDER[family].build(problem, dict(config), arch)


def choose(layer: Layer, memories: list[Memory], arch: Arch) -> Call:
    problem = problem_of(layer, memories)
    if layer.kind == "max_pool":
        operands = {"x": memories[0], "y": memories[1]}
        return Call(problem, "max_pool", {}, operands, layer.name)
    names = ["x", "w", *(["bias"] if layer.bias else []), *(["add"] if layer.add else []), "y"]
    family, config = _family(problem, arch)
    return Call(problem, family, config, dict(zip(names, memories, strict=True)), layer.name)


def problem_of(layer: Layer, memories: list[Memory]) -> Convolution:
    """A product of matrices is a convolution of one tap, with its rows as images."""
    x, y = memories[0], memories[-1]
    if layer.kind == "max_pool":
        channels, (kh, kw) = x.sizes[3], layer.window
        sizes = (*x.sizes, channels, kh, kw)
        groups = channels
    else:
        w = memories[1]
        image = x.sizes if len(w.sizes) == 4 else (prod(x.sizes[:-1]), 1, 1, x.sizes[-1])
        kh, kw = w.sizes[1:3] if len(w.sizes) == 4 else (1, 1)
        sizes = (*image, w.sizes[0], kh, kw)
        groups = layer.groups
    alone = groups == sizes[3] == sizes[4]
    dtype = "f32" if alone and layer.dtype == "tf32" else layer.dtype
    finish = None
    if layer.kind == "conv2d" and layer.dtype != "i8":
        finish = Epilogue(layer.bias, layer.add, layer.low, layer.high)
        finish = None if finish == Epilogue() else finish
    n, height, width, channels, filters, kh, kw = sizes
    how = (layer.stride, layer.padding, layer.dilation, groups, dtype)
    made = Convolution(n, height, width, channels, filters, kh, kw, *how, epilogue=finish)
    assert made.pixels * made.filters == y.count
    return made


def _family(problem: Convolution, arch: Arch) -> tuple[str, Config]:
    known = table.best_known(arch).get("conv2d", {}).get(f"{problem}|{problem.dtype}|nhwc", [])
    for entry in known:
        if entry.family in FAMILIES and _takes(LADDER[entry.family], problem, arch):
            return entry.family, entry.config
    names = ("wgmma", "mma", "tiled+both")
    for name in ("depthwise", *names) if problem.is_depthwise else names:
        if _takes(LADDER[name], problem, arch):
            return name, LADDER[name].configs(problem, arch)[0]
    raise UnsupportedError(f"no GPU kernel computes {problem} in {problem.dtype} on {arch.name}")


def _takes(family: Family[Convolution], problem: Convolution, arch: Arch) -> bool:
    return family.refuse(problem, arch) is None
