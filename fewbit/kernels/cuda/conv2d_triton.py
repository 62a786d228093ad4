"""Convolutions through Triton, which lays out shared memory and pipelines copies itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.plan import Buffer, Plan, Pointer
from fewbit.kernels.cuda.triton_source import compile_triton, pointer

_BLOCK = 1024


def _refuse(problem: Convolution, arch: Arch) -> str | None:
    if not arch.has_async_copies:
        return "Triton has no tensor cores before Ampere"
    return None


def constants(problem: Convolution, config: Config, programs: int) -> dict[str, Any]:
    """Return what the kernel knows when it is compiled."""
    language: Any = import_module("triton.language")
    (sh, sw), (ph, pw), (dh, dw) = problem.stride, problem.padding, problem.dilation
    return {
        "BATCH": problem.batch,
        "H": problem.height,
        "W": problem.width,
        "C": problem.channels,
        "F": problem.filters,
        "KH": problem.kh,
        "KW": problem.kw,
        "OH": problem.out_height,
        "OW": problem.out_width,
        "SH": sh,
        "SW": sw,
        "PH": ph,
        "PW": pw,
        "DH": dh,
        "DW": dw,
        "GROUPS": problem.groups,
        "NHWC": problem.layout == "nhwc",
        "SUM": language.int32 if problem.dtype == "i8" else language.float32,
        "PRECISION": "tf32" if problem.dtype == "tf32" else "ieee",
        "BM": config["bm"],
        "BN": config["bn"],
        "BK": config["bk"],
        "SPLIT": config["split"],
        "RASTER": 8,
        "PROGRAMS": programs,
    }


def _tiles(problem: Convolution, config: Config) -> int:
    filters = ceil_div(problem.filters // problem.groups, config["bn"])
    return ceil_div(problem.pixels, config["bm"]) * filters * problem.groups


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    buffers = problem.buffers()
    tiles, split = _tiles(problem, config), config["split"]
    programs = min(tiles, arch.multiprocessors * config["stay"]) if config["stay"] else tiles
    sums = "i32" if problem.dtype == "i8" else "f32"
    target = "parts" if split > 1 else "y"
    if split > 1:
        buffers["parts"] = Buffer(sums, (split, problem.pixels, problem.filters), "work")
    kernel = compile_triton(
        "conv2d",
        "conv2d",
        {name: pointer(buffers[at].dtype) for name, at in (("x", "x"), ("w", "w"), ("y", target))},
        constants(problem, config, programs),
        arch,
        warps=config["warps"],
        stages=config["stages"],
    )
    pointers = (Pointer("x"), Pointer("w"), Pointer(target))
    launches = [kernel.launch(0, (programs, split, 1), pointers)]
    images = [kernel.image]
    if split > 1:
        add = _add_parts(problem, split, sums, arch)
        blocks = ceil_div(problem.pixels * problem.filters, _BLOCK)
        launches.append(add.launch(1, (blocks, 1, 1), (Pointer("parts"), Pointer("y"))))
        images.append(add.image)
    return Plan("conv2d_triton", arch.code, buffers, tuple(launches), tuple(images))


def _add_parts(problem: Convolution, split: int, sums: str, arch: Arch) -> Any:
    return compile_triton(
        "conv2d",
        "add_parts",
        {"parts": pointer(sums), "y": pointer(problem.result)},
        {
            "M": problem.pixels,
            "F": problem.filters,
            "PLANE": problem.out_height * problem.out_width,
            "NHWC": problem.layout == "nhwc",
            "SPLIT": split,
            "BLOCK": _BLOCK,
        },
        arch,
        warps=4,
        stages=1,
    )


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    filters = problem.filters // problem.groups
    configs: list[Config] = []
    for bm, bn, bk, warps, stages in _TILES:
        if bn > max(64, 2 * filters):
            continue
        if problem.unit == 4 and bk > 32:
            bk = 32
        if problem.unit == 4:
            stages = min(stages, 3)  # with four and a split k, Triton 3.6 gives wrong sums
        base = {"bm": bm, "bn": bn, "bk": bk, "warps": warps, "stages": stages}
        tiles = _tiles(problem, base)
        if (bm + bn) * bk * problem.unit * stages > arch.shared:
            continue
        configs.append({**base, "split": 1, "stay": 0})
        if tiles > 2 * arch.multiprocessors:
            configs.append({**base, "split": 1, "stay": 1})
        if tiles < arch.multiprocessors:
            for split in (2, 4, 8):
                if ceil_div(problem.depth, bk) >= 2 * split and tiles * split <= 512:
                    configs.append({**base, "split": split, "stay": 0})
    return configs


_TILES = (
    (128, 64, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (64, 64, 64, 4, 4),
    (128, 64, 64, 4, 4),
    (128, 128, 64, 8, 4),
    (128, 256, 64, 8, 3),
    (256, 64, 64, 8, 3),
    (64, 128, 64, 4, 3),
    (32, 64, 64, 4, 4),
    (64, 32, 64, 4, 4),
    (128, 64, 32, 4, 4),
    (16, 64, 64, 4, 4),
)

TRITON = Family("triton", "an implicit GEMM in Triton's language", _refuse, _configs, _build)
