"""Depthwise-separable convolutions in one kernel: what is between the two never leaves the chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.depthwise_patch import patch_map, stage_bytes
from fewbit.kernels.cuda.depthwise_patch import refuse as refuse_depthwise
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer
from fewbit.kernels.cuda.warpgroup import wgmma

_STEP = 16
"""Channels of one matmul of the tensor cores."""
_CHUNK = 64
"""Channels of a warp that has a tile: a swizzled row of an operand of four warps."""


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


def pack_pointwise(problem: Separable, w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return filters [F, C] in the order of a warp's operands, [k / 16][f / 8][lane][4].

    Pairs of lanes are exchanged in the upper half, as matmuls of four warps want to find them.
    """
    shape = problem.buffers()["p"].shape
    split = w.reshape(shape[1], 8, shape[0], 2, 4, 2)
    lanes = split.transpose(2, 0, 1, 4, 3, 5).reshape(shape)
    order = np.arange(32)
    return np.ascontiguousarray(lanes[:, :, order ^ order // 16 * 2])


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
    if config["stages"]:
        text, names = "separable.cu", ("bh", "bw", "vec", "tw", "threads", "cb", "stages")
        head = ""
    else:
        text, names = "separable_tile.cu", ("bh", "bw", "producers")
        head = wgmma("multiply", problem.depthwise.dtype, problem.out)
    return source(
        "prelude.cu",
        "convolution.cu",
        "hopper.cu",
        **problem.depthwise.defines(),
        OUT=problem.out,
        **{name.upper(): config[name] for name in names},
    ) + "\n".join(("", head, source(text)))


def _build(problem: Separable, config: Config, arch: Arch) -> Plan:
    image = compile_source(separable_source(problem, config), arch).image
    d, shared = problem.depthwise, shared_bytes(problem, config)
    blocks = _tiles_of(d, config["bh"], config["bw"])
    if config["stages"]:
        channels, threads = config["cb"], config["threads"]
        most = 2048 // threads
        staying = next(n for n in (4, 3, 2, 1) if n <= most and (arch.fits(shared, n) or n == 1))
        blocks = min(blocks, arch.multiprocessors * staying)
    else:
        channels, threads = _CHUNK, 128 + config["producers"] * 32
    launch = Launch(
        0,
        "separable",
        (blocks, 1, 1),
        threads,
        (
            patch_map(d, config["bh"], config["bw"], channels),
            *(Pointer(name) for name in ("w", "p", "y")),
        ),
        shared,
    )
    return Plan("separable", arch.code, problem.buffers(), (launch,), (image,))


def shared_bytes(problem: Separable, config: Config) -> int:
    d, bh, bw = problem.depthwise, config["bh"], config["bw"]
    if not config["stages"]:
        patch = max(ceil_div(stage_bytes(d, bh, bw, _CHUNK), 1024), 8) * 1024
        return d.channels // _CHUNK * (patch + problem.out * 2 * _CHUNK) + 1024
    cb = config["cb"]
    stage = stage_bytes(d, bh, bw, cb) + ceil_div(d.kh * d.kw * cb * 4, 128) * 128
    stage += cb // _STEP * (problem.out // 8) * 256
    return config["stages"] * stage + 2 * bh * bw * (cb * 2 + 16)


def _configs(problem: Separable, arch: Arch) -> list[Config]:
    return [*_tiles(problem, arch), *_rings(problem, arch)]


def _rings(problem: Separable, arch: Arch) -> list[Config]:
    """Return settings of persistent blocks, which take channels in chunks."""
    d = problem.depthwise
    configs: list[Config] = []
    for cb in [cb for cb in (192, 144, 96, 64, 48, 32, 16) if d.channels % cb == 0][:4]:
        for bh, bw in ((8, 8), (4, 16), (8, 16), (4, 8), (2, 16)):
            for vec, tw in ((4, 4), (4, 8)):
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
                            configs.append(tried)
    return configs


def _tiles_of(problem: Convolution, bh: int, bw: int) -> int:
    return problem.batch * ceil_div(problem.out_height, bh) * ceil_div(problem.out_width, bw)


def _tiles(problem: Separable, arch: Arch) -> list[Config]:
    """Return settings of blocks that have all channels of a tile at once."""
    d = problem.depthwise
    if d.channels % _CHUNK or problem.out > 256 or d.kh * d.kw > 9:
        return []
    chunks = d.channels // _CHUNK
    sizes = {
        (ceil_div(d.out_height, high), ceil_div(d.out_width, wide))
        for high in range(1, 15)
        for wide in (1, 2, 4, 8)
    }
    configs: list[Config] = []
    for bh, bw in sorted(sizes, key=lambda size: (_tiles_of(d, *size), sum(size))):
        if not 32 <= bh * bw <= 64:
            continue
        for producers in sorted({chunks, ceil_div(chunks, 2)}, reverse=True):
            config = {"bh": bh, "bw": bw, "producers": producers, "stages": 0}
            if producers <= 12 and arch.fits(shared_bytes(problem, config)):
                configs.append(config)
    return configs


SEPARABLE = Family(
    "separable", "depthwise sums in shared memory, then tensor cores", _refuse, _configs, _build
)
