"""Convolutions without tensor cores: the first rungs of the ladder.

`naive` is a thread an output. `tiled` shares what a block's threads fetch; its settings add, one by
one, tiles of outputs in registers and accesses of several elements, so that each can be measured
alone.
"""

from __future__ import annotations

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer

_POINTERS = (Pointer("x"), Pointer("w"), Pointer("y"))
_THREADS = 256


def _refuse(problem: Convolution, arch: Arch) -> str | None:
    return "tf32 is for tensor cores" if problem.dtype == "tf32" else None


def _build_naive(problem: Convolution, config: Config, arch: Arch) -> Plan:
    text = source("prelude.cu", "convolution.cu", "conv2d_naive.cu", **problem.defines())
    image = compile_source(text, arch).image
    blocks = ceil_div(problem.pixels * problem.filters, _THREADS)
    launch = Launch(0, "conv2d_naive", (blocks, 1, 1), _THREADS, _POINTERS)
    return Plan("conv2d_naive", arch.code, problem.buffers(), (launch,), (image,))


def tiled_source(problem: Convolution, config: Config) -> str:
    inner = problem.channels // problem.groups
    widest = 16 // problem.unit
    row = inner if problem.layout == "nhwc" else problem.depth
    wide = config["vectors"] == 1
    x = _vector(inner, min(widest, config["bk"])) if problem.layout == "nhwc" else 1
    y = _vector(problem.filters // problem.groups, min(config["tn"], 4))
    return source(
        "prelude.cu",
        "convolution.cu",
        "conv2d_tiled.cu",
        **problem.defines(),
        **{name.upper(): config[name] for name in ("bm", "bn", "bk", "tm", "tn")},
        VX=x if wide else 1,
        VW=_vector(row, min(widest, config["bk"])) if wide else 1,
        VY=y if wide and problem.layout == "nhwc" else 1,
    )


def _build_tiled(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(tiled_source(problem, config), arch).image
    blocks = (
        ceil_div(problem.pixels, config["bm"]),
        ceil_div(problem.filters // problem.groups, config["bn"]),
        problem.groups,
    )
    threads = config["bm"] * config["bn"] // (config["tm"] * config["tn"])
    pointers = (Pointer("x"), Pointer("w"), *problem.arguments())
    launch = Launch(0, "conv2d_tiled", blocks, threads, pointers)
    return Plan("conv2d_tiled", arch.code, problem.buffers(), (launch,), (image,))


def _vector(size: int, most: int) -> int:
    """Return the widest power of two that divides a row."""
    return next(width for width in (16, 8, 4, 2, 1) if width <= most and size % width == 0)


def _tile(bm: int, bn: int, bk: int, tm: int, tn: int, vectors: int) -> Config:
    return {"bm": bm, "bn": bn, "bk": bk, "tm": tm, "tn": tn, "vectors": vectors}


SMALL, LARGE = (32, 32, 32, 1, 1), (64, 64, 16, 4, 4)


def _tiles(problem: Convolution, arch: Arch) -> list[Config]:
    shapes = [LARGE, (128, 64, 16, 8, 4), (128, 128, 16, 8, 8), (128, 64, 16, 8, 8)]
    return [_tile(*shape, vectors=1) for shape in shapes]


NAIVE = Family(
    "naive",
    "a thread an output, all from global memory",
    _refuse,
    lambda _p, _a: [{}],
    _build_naive,
)
TILED = Family(
    "tiled",
    "blocks fetch tiles into shared memory together",
    _refuse,
    lambda _p, _a: [_tile(*SMALL, vectors=0)],
    _build_tiled,
)
TILED_VECTORS = Family(
    "tiled+vectors",
    "tiled, with 16 bytes an access",
    _refuse,
    lambda _p, _a: [_tile(*SMALL, vectors=1)],
    _build_tiled,
)
TILED_THREADS = Family(
    "tiled+threads",
    "tiled, with a tile of outputs in each thread's registers",
    _refuse,
    lambda _p, _a: [_tile(*LARGE, vectors=0)],
    _build_tiled,
)
TILED_BOTH = Family("tiled+both", "tiled, with both", _refuse, _tiles, _build_tiled)
