"""Convolutions with Hopper's tensor cores: warpgroup matmuls, fed by the copy engine.

The copy engine takes pixels in the order of the output and fills in zeros for padding, if a pixel's
channels are a multiple of 16 bytes. A matmul is a convolution of one tap, and uses the same kernel.
"""

from __future__ import annotations

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import BYTES, Launch, Plan, TensorMap
from fewbit.kernels.cuda.warpgroup import wgmma

_SLICE = 128
"""Bytes along k that are fetched at a time: as wide as a swizzle."""
_BARRIERS = 1024
"""More than barriers and alignment take."""


def refuse(problem: Convolution, arch: Arch) -> str | None:
    """Return why Hopper's copy engine cannot feed this convolution, if it cannot."""
    inner = problem.channels // problem.groups
    if not arch.has_warpgroups:
        return f"{arch.name} has no warpgroup matmuls"
    if problem.dtype == "f32":
        return "tensor cores have no f32; tf32 is the nearest"
    if problem.layout != "nhwc":
        return "the copy engine wants channels-last images (nhwc)"
    if inner * problem.unit % 16:
        return "a pixel's channels are not a multiple of 16 bytes"
    if problem.groups > 1 and inner * problem.unit % _SLICE:
        return "a group's channels are not a multiple of 128 bytes"
    if problem.filters // problem.groups * BYTES[problem.result] % 16:
        return "a group's filters are not a multiple of 16 bytes"
    if max(problem.stride) > 8:
        return "the copy engine steps by 8 pixels at most"
    return None


def wgmma_source(problem: Convolution, config: Config) -> str:
    return "\n".join(
        [
            source("prelude.cu", "convolution.cu", "hopper.cu", **problem.defines()),
            wgmma("multiply", problem.dtype, config["bn"]),
            source(
                "conv2d_wgmma.cu",
                BN=config["bn"],
                MI=config["mi"],
                CONSUMERS=config["consumers"],
                STAGES=config["stages"],
                SPLIT=config["split"],
                RASTER=config["raster"],
                BLOCKS=config["blocks"],
            ),
        ]
    )


def pixel_map(problem: Convolution, pixels: int) -> TensorMap:
    """Return the tensor map of columns of pixels of x, in the order of the output."""
    unit, c = problem.unit, problem.channels
    (ph, pw), (dh, dw) = problem.padding, problem.dilation
    return TensorMap(
        "x",
        problem.dtype,
        (c, problem.width, problem.height, problem.batch),
        (c * unit, problem.width * c * unit, problem.height * problem.width * c * unit),
        (_SLICE // unit, pixels),
        corners=((-pw, -ph), (pw - (problem.kw - 1) * dw, ph - (problem.kh - 1) * dh)),
        steps=(1, problem.stride[1], problem.stride[0], 1),
    )


def weight_map(problem: Convolution, filters: int) -> TensorMap:
    """Return the tensor map of one tap of some filters."""
    unit, inner = problem.unit, problem.channels // problem.groups
    taps = problem.kh * problem.kw
    return TensorMap(
        "w",
        problem.dtype,
        (inner, taps, problem.filters),
        (inner * unit, taps * inner * unit),
        (_SLICE // unit, 1, filters),
    )


def tile_pixels(config: Config) -> int:
    return 64 * config["mi"] * config["consumers"]


def shared_bytes(problem: Convolution, config: Config) -> int:
    bm, bn = tile_pixels(config), config["bn"]
    ring = config["stages"] * (bm + bn) * _SLICE
    staged = config["consumers"] * 64 * (bn * BYTES[problem.result] + 16)
    summed = bm * (bn + 4) * 4
    return ring + (summed if config["split"] > 1 else staged) + _BARRIERS


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(wgmma_source(problem, config), arch).image
    bm, bn, split = tile_pixels(config), config["bn"], config["split"]
    tiles = problem.groups * ceil_div(problem.pixels, bm)
    tiles *= ceil_div(problem.filters // problem.groups, bn)
    staying = arch.multiprocessors * config["blocks"]
    launch = Launch(
        0,
        "conv2d_wgmma",
        (tiles * split if split > 1 else min(tiles, staying), 1, 1),
        threads(config),
        (pixel_map(problem, bm), weight_map(problem, bn), *problem.arguments()),
        shared_bytes(problem, config),
        split,
    )
    return Plan("conv2d_wgmma", arch.code, problem.buffers(), (launch,), (image,))


def threads(config: Config) -> int:
    """Return the threads of a block: one warp fetches, or four where they give registers away."""
    return config["consumers"] * 128 + (128 if config["blocks"] == 1 else 32)


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    filters = problem.filters // problem.groups
    inner = problem.channels // problem.groups * problem.unit
    steps = problem.kh * problem.kw * ceil_div(inner, _SLICE)
    configs: list[Config] = []
    for consumers, mi, bn in _TILES:
        if bn // 2 >= max(filters, 64):
            continue
        tiles = ceil_div(problem.pixels, 64 * mi * consumers) * ceil_div(filters, bn)
        sums = mi * bn // 2
        for blocks in (1, 2, 3, 4):
            threads = consumers * 128 + 32
            if blocks > 1 and (
                tiles <= arch.multiprocessors or sums + 64 > 65536 // threads // blocks
            ):
                continue
            for split in (1, 2, 4, 8):
                if split > 1 and (blocks > 1 or tiles * split > 2 * arch.multiprocessors):
                    continue
                if split > steps:
                    continue
                chosen = {"consumers": consumers, "mi": mi, "bn": bn}
                chosen |= {"split": split, "raster": 8, "blocks": blocks}
                for stages in (8, 7, 6, 5, 4, 3, 2):
                    config = {**chosen, "stages": stages}
                    if arch.fits(shared_bytes(problem, config), blocks):
                        configs.append(config)
                        break
    return configs


_TILES = (
    (2, 1, 128),
    (2, 1, 256),
    (2, 2, 128),
    (2, 1, 64),
    (2, 2, 64),
    (1, 1, 64),
    (1, 1, 128),
    (1, 2, 64),
    (1, 2, 128),
    (3, 1, 128),
    (1, 1, 32),
)

WGMMA = Family(
    "wgmma", "Hopper's warpgroup matmuls, fed by the copy engine", refuse, _configs, _build
)
