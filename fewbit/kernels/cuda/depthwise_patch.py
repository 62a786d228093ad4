"""Depthwise convolutions on Hopper, from patches that the copy engine brings."""

from __future__ import annotations

from math import lcm

from fewbit.kernels.cuda import depthwise
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer, TensorMap

_MOST_THREADS = 512


def refuse(problem: Convolution, arch: Arch) -> str | None:
    if not arch.has_warpgroups:
        return f"{arch.name} has no copy engine"
    if problem.layout != "nhwc":
        return "the copy engine wants channels-last images (nhwc)"
    if problem.channels * problem.unit % 16:
        return "a pixel's channels are not a multiple of 16 bytes"
    return depthwise.refuse(problem, arch)


def patch_sizes(problem: Convolution, high: int, wide: int) -> tuple[int, int]:
    """Return rows and columns of the input that so many outputs need."""
    (sh, sw), (dh, dw) = problem.stride, problem.dilation
    rows = (high - 1) * sh + (problem.kh - 1) * dh + 1
    return rows, (wide - 1) * sw + (problem.kw - 1) * dw + 1


def patch_map(problem: Convolution, high: int, wide: int, channels: int) -> TensorMap:
    unit, c = problem.unit, problem.channels
    rows, columns = patch_sizes(problem, high, wide)
    return TensorMap(
        "x",
        "f32" if problem.dtype == "tf32" else problem.dtype,
        (c, problem.width, problem.height, problem.batch),
        (c * unit, problem.width * c * unit, problem.height * problem.width * c * unit),
        (channels, columns, rows, 1),
        swizzle=0,
    )


def stage_bytes(problem: Convolution, high: int, wide: int, channels: int) -> int:
    rows, columns = patch_sizes(problem, high, wide)
    return ceil_div(rows * columns * channels * problem.unit, 128) * 128


def patch_source(problem: Convolution, config: Config) -> str:
    return source(
        "prelude.cu",
        "convolution.cu",
        "hopper.cu",
        "depthwise_patch.cu",
        **problem.defines(),
        **{name.upper(): config[name] for name in ("bh", "bw", "cb", "vec", "th", "tw", "stages")},
        THREADS=threads(config),
    )


def threads(config: Config) -> int:
    """Return about 256 threads, a multiple of a warp, such that a thread keeps its channels."""
    least = lcm(config["cb"] // config["vec"], 32)
    return least * max(1, 256 // least)


def shared_bytes(problem: Convolution, config: Config) -> int:
    return config["stages"] * stage_bytes(problem, config["bh"], config["bw"], config["cb"])


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(patch_source(problem, config), arch).image
    tiles = problem.batch * problem.channels // config["cb"]
    tiles *= ceil_div(problem.out_height, config["bh"]) * ceil_div(problem.out_width, config["bw"])
    shared = shared_bytes(problem, config)
    staying = next(blocks for blocks in (4, 3, 2, 1) if arch.fits(shared, blocks))
    launch = Launch(
        0,
        "depthwise_patch",
        (min(tiles, arch.multiprocessors * staying), 1, 1),
        threads(config),
        (
            patch_map(problem, config["bh"], config["bw"], config["cb"]),
            Pointer("w"),
            Pointer("y"),
        ),
        shared,
    )
    buffers = depthwise.buffers(problem)
    return Plan("depthwise_patch", arch.code, buffers, (launch,), (image,))


def blocks_of_channels(problem: Convolution) -> list[int]:
    """Return the divisors of the channels that the copy engine takes, widest first."""
    sizes = [
        size
        for size in range(min(problem.channels, 256), 0, -1)
        if problem.channels % size == 0 and size * problem.unit % 16 == 0
    ]
    return [size for size in sizes if size * problem.unit >= 64][:4] or sizes[:1]


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    configs: list[Config] = []
    for cb in blocks_of_channels(problem):
        for bh, bw in ((8, 8), (8, 16), (16, 16), (4, 28), (14, 14), (7, 14), (8, 28), (4, 8)):
            if bh > 2 * problem.out_height or bw > 2 * problem.out_width:
                continue
            for vec, th, tw, stages in _WORK:
                config = {
                    "bh": bh, "bw": bw, "cb": cb, "vec": vec, "th": th, "tw": tw, "stages": stages,
                }  # fmt: skip
                if cb % vec or bh % th or bw % tw or vec * problem.unit > 16:
                    continue
                if threads(config) > _MOST_THREADS or max(patch_sizes(problem, bh, bw)) > 256:
                    continue
                if depthwise.registers(problem, vec, th, tw) > 65536 // threads(config) // 2:
                    continue
                if arch.fits(shared_bytes(problem, config)):
                    configs.append(config)
    return configs


_WORK = (
    (4, 1, 4, 2),
    (4, 2, 2, 2),
    (4, 4, 2, 2),
    (4, 2, 4, 3),
    (8, 1, 2, 2),
    (8, 2, 1, 3),
    (2, 4, 4, 2),
    (2, 7, 2, 2),
    (1, 1, 1, 2),
)

DEPTHWISE_PATCH = Family(
    "depthwise_patch", "patches that the copy engine brings", refuse, _configs, _build
)
