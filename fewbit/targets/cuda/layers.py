"""Which kernel computes a layer, now that its sizes are known.

The settings are those that were measured to be best for a shape, where the table has it; nothing is
tuned here. Otherwise the first of the families that can compute it, in the order of their speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import isfinite, prod
from typing import Any

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.cached_attention import CachedAttention, cached_attention_plan
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution, Epilogue
from fewbit.kernels.cuda.family import Config, Family
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul, arrange, arrange_scales
from fewbit.kernels.cuda.few_bit_fused import fused_plan
from fewbit.kernels.cuda.max_pool import max_pool_plan
from fewbit.kernels.cuda.plan import Plan
from fewbit.kernels.cuda.prologue import Prologue
from fewbit.kernels.cuda.unfold import Unfold, unfold_plan
from fewbit.targets.cuda.attention import FAMILIES as ATTENTION
from fewbit.targets.cuda.attention import attention_of, families_for
from fewbit.targets.cuda.layer import Layer
from fewbit.targets.cuda.memory import Memory

Array = np.ndarray[Any, Any]
Problem = Convolution | FewBitMatmul | Attention | CachedAttention | Unfold

FAMILIES = ("wgmma", "patch", "mma", "tiled+both", "depthwise")
"""Those that finish a sum themselves."""

ATTENTION_TO_CACHE: tuple[str, ...] = ("q", "k", "v", "seen", "y")


@dataclass(frozen=True)
class Call:
    """A layer with its sizes, and the kernel that was chosen for it."""

    problem: Problem
    family: str
    config: Config
    operands: dict[str, Memory]
    layer: str = ""
    kind: str = "conv2d"
    repacked: dict[str, Callable[[Array], Array]] = field(
        default_factory=dict[str, Callable[[Array], Array]]
    )
    """Constants as the kernel reads them."""
    added: dict[str, Array] = field(default_factory=dict[str, Array])
    """What the kernel reads and the program does not have."""

    @property
    def reads(self) -> list[Memory]:
        return [memory for name, memory in self.operands.items() if name != "y"]

    @property
    def writes(self) -> list[Memory]:
        return [self.operands["y"]]

    def move(self, place: Callable[[Memory], Memory]) -> Call:
        """Return the same layer on memory that lies elsewhere."""
        return replace(self, operands={name: place(m) for name, m in self.operands.items()})

    def plan(self, arch: Arch, prologue: Prologue | None = None) -> Plan:
        settings = tuple(self.config.items())
        return _plan(self.problem, self.kind, self.family, settings, arch, prologue)

    def describe(self) -> dict[str, Any]:
        """Return the call as plain data, without its operands."""
        plain: dict[str, Any] = {
            "step": self.kind,
            "layer": self.layer,
            "kernel": self.family,
            "problem": str(self.problem),
            "config": dict(self.config),
        }
        match self.problem:
            case Convolution(dtype=dtype, epilogue=finish):
                bounds = (None, None) if finish is None else (finish.low, finish.high)
                ends = [b if b is not None and isfinite(b) else None for b in bounds]
                return {**plain, "dtype": dtype, "bounds": ends}
            case FewBitMatmul(dtype=dtype, result=result):
                return {**plain, "dtype": dtype, "result": result}
            case Attention(dtype=dtype, strides=strides):
                return {**plain, "dtype": dtype, "strides": [list(each) for each in strides]}
            case CachedAttention(dtype=dtype, scale=scale):
                return {**plain, "dtype": dtype, "scale": scale}
            case Unfold(of=of):
                return {**plain, "problem": str(of), "dtype": of.dtype}


@lru_cache(256)
def _plan(
    problem: Problem,
    kind: str,
    family: str,
    config: tuple[tuple[str, int], ...],
    arch: Arch,
    prologue: Prologue | None,
) -> Plan:
    """Return layers of the same shape have the same code."""
    if isinstance(problem, FewBitMatmul) and prologue is not None:
        return fused_plan(problem, dict(config), arch, prologue)
    if isinstance(problem, FewBitMatmul):
        return FEW_BIT.build(problem, dict(config), arch)
    if isinstance(problem, Attention):
        return ATTENTION[family].build(problem, dict(config), arch)
    if isinstance(problem, CachedAttention):
        return cached_attention_plan(problem, arch, prologue, bool(dict(config).get("early")))
    if isinstance(problem, Unfold):
        return unfold_plan(problem, arch)
    if kind == "max_pool":
        return max_pool_plan(problem, arch)
    return LADDER[family].build(problem, dict(config), arch)


def choose(layer: Layer, memories: list[Memory], arch: Arch) -> Call:
    if layer.kind == "few_bit":
        return _few_bit(layer, memories, arch)
    if layer.kind == "attention":
        return _attention(layer, memories, arch)
    if layer.kind == "cached_attention":
        operands: dict[str, Memory] = dict(zip(ATTENTION_TO_CACHE, memories, strict=True))
        (heads, rows, width), tokens = operands["q"].sizes, operands["v"].sizes[1]
        problem = CachedAttention(heads, rows, tokens, width, layer.dtype, layer.scale)
        return Call(problem, layer.kind, {}, operands, layer.name, layer.kind)
    if layer.kind == "unfold":
        operands = {"x": memories[0], "y": memories[1]}
        problem = _spread(layer, memories[0])
        return Call(problem, layer.kind, {}, operands, layer.name, layer.kind)
    problem = problem_of(layer, memories)
    if layer.kind == "max_pool":
        operands = {"x": memories[0], "y": memories[1]}
        return Call(problem, layer.kind, {}, operands, layer.name, layer.kind)
    names = ["x", "w", *(["bias"] if layer.bias else []), *(["add"] if layer.add else []), "y"]
    family, config = _family(problem, arch)
    operands = dict(zip(names, memories, strict=True))
    changed: dict[str, Callable[[Array], Array]] = {}
    if family == "depthwise":
        changed["w"] = partial(_depthwise, problem.dtype)
    if layer.spread is not None:
        changed["w"] = layer.spread.filters
    return Call(problem, family, config, operands, layer.name, repacked=changed)


def _depthwise(dtype: str, weight: Array) -> Array:
    """Return channels-last filters, in the type of the accumulators."""
    wide = weight.astype(np.int32 if dtype == "i8" else np.float32)
    return np.ascontiguousarray(np.moveaxis(wide[..., 0], 0, -1))


def _few_bit(layer: Layer, memories: list[Memory], arch: Arch) -> Call:
    x, weight, *scale, y = memories
    rows_scale = scale.pop() if layer.by_rows else None
    (n, k), rows = weight.sizes, prod(x.sizes[:-1])
    groups = (*scale[0].sizes, 1)[1] if scale and len(scale[0].sizes) == 2 else 1
    assert layer.width is not None
    problem = FewBitMatmul(rows, n, k, layer.width, groups, layer.dtype, "f32")
    known = table.find(arch, "few_bit", f"{problem}|{problem.dtype}", FEW_BIT.name)
    config = FEW_BIT.configs(problem, arch)[0] if known is None else known.config
    operands = {"x": x, "q": weight, "y": y}
    changed: dict[str, Callable[[Array], Array]] = {"q": partial(arrange, problem)}
    scales = partial(arrange_scales, problem)
    added: dict[str, Array] = {}
    if rows_scale is not None:
        operands["row_scale"] = rows_scale
    else:
        added["row_scale"] = np.ones(problem.buffers()["row_scale"].shape, np.float32)
    if scale:
        operands["scale"] = scale[0]
        changed["scale"] = scales
    else:
        added["scale"] = scales(np.ones((1, groups), np.float32))
    family = FEW_BIT.name
    return Call(problem, family, config, operands, layer.name, "few_bit", changed, added)


def _attention(layer: Layer, memories: list[Memory], arch: Arch) -> Call:
    problem, given = attention_of(layer, memories)
    operands = dict(zip("qkvy", given, strict=True))
    families = families_for(problem, arch)
    known = table.best_known(arch).get("attention", {}).get(f"{problem}|{problem.dtype}", [])
    choice = next(((e.family, e.config) for e in known if e.family in families), None)
    if choice is None:
        name, family = next(iter(families.items()))
        choice = name, family.configs(problem, arch)[0]
    return Call(
        problem,
        *choice,
        operands,
        layer.name,
        "attention",
        added={"lengths": np.array([problem.keys], np.int32)},
    )


def problem_of(layer: Layer, memories: list[Memory]) -> Convolution:
    """Return the problem; a matmul is a convolution of one tap, with its rows as images."""
    x, y = memories[0], memories[-1]
    if layer.spread is not None:
        return replace(_spread(layer, x).convolution, epilogue=_epilogue(layer))
    groups = layer.groups
    if layer.kind == "max_pool":
        channels, (kh, kw) = x.sizes[3], layer.window
        sizes = (*x.sizes, channels, kh, kw)
        groups = channels
    else:
        w = memories[1]
        image = x.sizes if len(w.sizes) == 4 else (prod(x.sizes[:-1]), 1, 1, x.sizes[-1])
        kh, kw = w.sizes[1:3] if len(w.sizes) == 4 else (1, 1)
        sizes = (*image, w.sizes[0], kh, kw)
    alone = groups == sizes[3] == sizes[4]
    dtype = "f32" if alone and layer.dtype == "tf32" else layer.dtype
    n, height, width, channels, filters, kh, kw = sizes
    how = (layer.stride, layer.padding, layer.dilation, groups, dtype)
    problem = Convolution(
        n, height, width, channels, filters, kh, kw, *how, epilogue=_epilogue(layer)
    )
    assert problem.pixels * problem.filters == y.count
    return problem


def _spread(layer: Layer, x: Memory) -> Unfold:
    assert layer.spread is not None
    return Unfold(replace(layer.spread.of, batch=x.sizes[0]))


def _epilogue(layer: Layer) -> Epilogue | None:
    if layer.kind != "conv2d" or layer.dtype == "i8":
        return None
    finish = Epilogue(layer.bias, layer.add, layer.low, layer.high)
    return None if finish == Epilogue() else finish


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
