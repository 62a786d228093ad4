"""Depthwise-separable convolutions in one kernel: what is between the two never leaves the chip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.kernels.cuda import depthwise
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.depthwise_patch import patch_map, patch_sizes, stage_bytes
from fewbit.kernels.cuda.depthwise_patch import refuse as refuse_depthwise
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer

_STEP = 16
"""Channels of one product of the tensor cores."""


@dataclass(frozen=True)
class Separable:
    """A depthwise convolution and a pointwise one after it."""

    depthwise: Convolution
    out: int

    def buffers(self) -> dict[str, Buffer]:
        d = self.depthwise
        return {
            "x": Buffer(d.dtype, (d.batch, d.height, d.width, d.channels)),
            "w": Buffer("f32", (d.kh, d.kw, d.channels)),
            "p": Buffer(d.dtype, (d.channels // _STEP, self.out // 8, 32, 4)),
            "y": Buffer(d.dtype, (d.batch, d.out_height, d.out_width, self.out), "out"),
        }

    def __str__(self) -> str:
        return f"{self.depthwise} and then {self.out} filters of one tap"


def pack_depthwise(problem: Separable, w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights [C, KH, KW, 1] as floats [KH, KW, C]."""
    return depthwise.pack(problem.depthwise, w)


def pack_pointwise(problem: Separable, w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Filters [F, C] in the order of a warp's operands: [k / 16][f / 8][lane][4]."""
    shape = problem.buffers()["p"].shape
    lanes = w.reshape(shape[1], 8, shape[0], 2, 4, 2)
    return np.ascontiguousarray(lanes.transpose(2, 0, 1, 4, 3, 5)).reshape(shape)


def _refuse(problem: Separable, arch: Arch) -> str | None:
    d = problem.depthwise
    if d.dtype not in ("f16", "bf16"):
        return "it is not f16 or bf16"
    if problem.out % 8 or d.channels % _STEP:
        return "its filters are not a multiple of 8, or its channels of 16"
    if problem.out > 1024:
        return "it has more than 1024 filters"
    return refuse_depthwise(d, arch)


def separable_source(problem: Separable, config: Config) -> str:
    names = ("bh", "bw", "vec", "tw", "threads")
    if config["stages"]:
        text, names = "separable.cu", (*names, "cb", "stages")
    else:
        text, names = "separable_split.cu", (*names, "cluster", "wm", "resident")
    return source(
        "prelude.cu",
        "convolution.cu",
        "hopper.cu",
        text,
        **problem.depthwise.defines(),
        OUT=problem.out,
        **{name.upper(): config[name] for name in names},
    )


def _build(problem: Separable, config: Config, arch: Arch) -> Plan:
    image = compile_source(separable_source(problem, config), arch).image
    d, shared = problem.depthwise, shared_bytes(problem, config)
    tiles = d.batch * ceil_div(d.out_height, config["bh"]) * ceil_div(d.out_width, config["bw"])
    cluster = config.get("cluster", 1)
    blocks, channels = tiles * cluster, d.channels // cluster
    if config["stages"]:
        most, channels = 2048 // config["threads"], config["cb"]
        staying = next(n for n in (4, 3, 2, 1) if n <= most and (arch.fits(shared, n) or n == 1))
        blocks = min(tiles, arch.multiprocessors * staying)
    launch = Launch(
        0,
        "separable",
        (blocks, 1, 1),
        config["threads"],
        (
            patch_map(d, config["bh"], config["bw"], channels),
            *(Pointer(name) for name in ("w", "p", "y")),
        ),
        shared,
        cluster,
    )
    return Plan("separable", arch.code, problem.buffers(), (launch,), (image,))


def shared_bytes(problem: Separable, config: Config) -> int:
    d, bh, bw = problem.depthwise, config["bh"], config["bw"]
    cb = config["cb"] if config["stages"] else d.channels // config["cluster"]
    stage = stage_bytes(d, bh, bw, cb) + ceil_div(d.kh * d.kw * cb * 4, 128) * 128
    points = cb // _STEP * (problem.out // 8) * 256
    if config["stages"]:
        return config["stages"] * (stage + points) + 2 * bh * bw * (cb * 2 + 16)
    received = bh * bw * problem.out * 4 if config["cluster"] > 1 else 0
    high = _blocks_high(config) * config["wm"] * _STEP
    return max(stage, ceil_div(received, 128) * 128) + points + high * (cb * 2 + 16)


def _blocks_high(config: Config) -> int:
    """Warps that are needed for a tile's pixels, without a ring."""
    return ceil_div(ceil_div(config["bh"] * config["bw"], _STEP), config["wm"])


def _configs(problem: Separable, arch: Arch) -> list[Config]:
    return [*_rings(problem, arch), *_splits(problem, arch)]


def _rings(problem: Separable, arch: Arch) -> list[Config]:
    """Blocks that stay, with channels going through them in chunks."""
    d = problem.depthwise
    found: list[Config] = []
    for cb in [cb for cb in (192, 144, 96, 64, 48, 32, 16) if d.channels % cb == 0][:4]:
        for bh, bw in ((8, 8), (4, 16), (8, 16), (4, 8), (2, 16), (2, 8), (1, 16)):
            for vec, tw in ((4, 4), (8, 2), (4, 8), (4, 2)):
                for threads in (256, 128):
                    warps, blocks = threads // 32, bh * bw // 16
                    if warps % blocks or ceil_div(problem.out // 8, warps // blocks) > 24:
                        continue
                    config = {
                        "bh": bh, "bw": bw, "cb": cb, "vec": vec, "tw": tw, "threads": threads,
                    }  # fmt: skip
                    for stages in (2, 3):
                        tried = {**config, "stages": stages}
                        if arch.fits(shared_bytes(problem, tried)):
                            found.append(tried)
    return found


def _splits(problem: Separable, arch: Arch) -> list[Config]:
    """Clusters that share the channels of a tile, which is a whole part of the image."""
    d = problem.depthwise
    found: list[Config] = []
    tiles = {
        (ceil_div(d.out_height, high), ceil_div(d.out_width, wide))
        for high in (1, 2, 3, 4, 7, 14)
        for wide in (1, 2, 4)
    }
    for cluster in (1, 2, 3, 4, 6, 8):
        channels = d.channels // cluster
        if d.channels % (cluster * _STEP) or channels > 256 or problem.out % (cluster * 8):
            continue
        for bh, bw in sorted(tiles):
            count = d.batch * ceil_div(d.out_height, bh) * ceil_div(d.out_width, bw) * cluster
            if not 16 <= bh * bw <= 256 or max(patch_sizes(d, bh, bw)) > 256:
                continue
            if count > 4 * arch.multiprocessors and cluster > 1:
                continue
            for vec, tw, threads, wm in product(
                (2, 4), (14, 8, 7, 4, 2), (256, 512), (1, 2, 4)
            ):
                config = {
                    "bh": bh, "bw": bw, "vec": vec, "tw": tw, "threads": threads, "wm": wm,
                    "cluster": cluster, "stages": 0,
                }  # fmt: skip
                shared = shared_bytes(problem, config)
                sums = wm * ceil_div(problem.out // 8, max(1, threads // 32 // _blocks_high(config)))
                if bw % tw or threads // 32 < _blocks_high(config) or not arch.fits(shared):
                    continue
                resident = 2 if arch.fits(shared, 2) else 1
                if max(sums * 4, tw * vec + tw + 8) + 32 > 65536 // (threads * resident):
                    continue
                found.append({**config, "resident": resident})
    return found


SEPARABLE = Family(
    "separable", "depthwise sums in shared memory, then tensor cores", _refuse, _configs, _build
)
