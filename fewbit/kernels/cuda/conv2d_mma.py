"""Convolutions with tensor cores, a warp at a time (`mma.sync`): any, from Turing on."""

from __future__ import annotations

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer

_PITCH = 80


def _refuse(problem: Convolution, arch: Arch) -> str | None:
    if problem.dtype == "f32":
        return "tensor cores have no f32; tf32 is the nearest"
    try:
        problem.check(arch)
    except UnsupportedError as error:
        return error.what
    return None


def mma_source(problem: Convolution, config: Config) -> str:
    inner = problem.channels // problem.groups
    piece = 16 // problem.unit
    aligned = problem.layout == "nhwc" and inner % piece == 0
    return source(
        "prelude.cu",
        "convolution.cu",
        "conv2d_mma.cu",
        **problem.defines(),
        **{name.upper(): config[name] for name in ("bm", "bn", "wm", "wn", "stages")},
        ALIGNED_X=int(aligned),
        ALIGNED_W=int(problem.depth % piece == 0),
    )


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(mma_source(problem, config), arch).image
    blocks = (
        ceil_div(problem.pixels, config["bm"]),
        ceil_div(problem.filters // problem.groups, config["bn"]),
        problem.groups,
    )
    threads = (config["bm"] // config["wm"]) * (config["bn"] // config["wn"]) * 32
    launch = Launch(
        0,
        "conv2d_mma",
        blocks,
        threads,
        (Pointer("x"), Pointer("w"), *problem.arguments()),
        shared_bytes(config),
    )
    return Plan("conv2d_mma", arch.code, problem.buffers(), (launch,), (image,))


def shared_bytes(config: Config) -> int:
    return config["stages"] * (config["bm"] + config["bn"]) * _PITCH


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    tiles = [
        (64, 64, 32, 32),
        (128, 64, 32, 32),
        (128, 64, 64, 32),
        (128, 128, 64, 32),
        (128, 128, 64, 64),
        (64, 32, 32, 16),
        (256, 64, 64, 32),
    ]
    filters = problem.filters // problem.groups
    configs: list[Config] = [
        {"bm": bm, "bn": bn, "wm": wm, "wn": wn, "stages": stages}
        for bm, bn, wm, wn in tiles
        for stages in ((2,) if not arch.has_async_copies else (3, 4))
        if bn <= max(filters, 64) or bn == 32
    ]
    return [config for config in configs if shared_bytes(config) <= arch.shared]


MMA = Family("mma", "tensor cores, a warp at a time (mma.sync)", _refuse, _configs, _build)
