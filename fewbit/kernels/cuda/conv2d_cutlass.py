"""Convolutions from CUTLASS's templates: the rung that a library's kernels would stand on.

CUTLASS's headers come with pip (`nvidia-cutlass`), and the toolkit's with `nvidia-cuda-nvcc` and
`nvidia-cuda-cccl`; NVRTC compiles them like our own sources, in about half a minute. These are the
kernels for Ampere (`mma.sync`, asynchronous copies), which run on every generation since.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fewbit.errors import MissingToolError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer

_TYPES = {
    "f16": ("cutlass::half_t", "cutlass::half_t", "float"),
    "bf16": ("cutlass::bfloat16_t", "cutlass::bfloat16_t", "float"),
    "tf32": ("float", "float", "float"),
    "i8": ("int8_t", "int32_t", "int32_t"),
}
"""Input, result and sums."""
_DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "i8": 32}
"""M, N and K of one instruction."""


def _refuse(problem: Convolution, arch: Arch) -> str | None:
    if not arch.has_async_copies:
        return f"{arch.name} has no asynchronous copies"
    if problem.dtype not in _TYPES:
        return "tensor cores have no f32; tf32 is the nearest"
    if problem.layout != "nhwc" or problem.groups != 1:
        return "it has groups, or channels come first"
    if problem.channels * problem.unit % 16 or problem.filters % 8:
        return "its channels are not a multiple of 16 bytes, or its filters of 8"
    if problem.kh > 32 or problem.kw > 32:
        return "its filter is larger than 32"
    return None


def cutlass_source(problem: Convolution, config: Config) -> str:
    given, result, sums = _TYPES[problem.dtype]
    integer = problem.dtype == "i8"
    return source(
        "conv2d_cutlass.cu",
        **problem.defines(),
        INPUT=given,
        RESULT=result,
        SUM=sums,
        PER_STORE=4 if integer or problem.dtype == "tf32" else 8,
        ALIGNMENT=16 // problem.unit,
        BM=config["bm"],
        BN=config["bn"],
        BK=64 // problem.unit if config["bk"] == 64 else 128 // problem.unit,
        WM=config["wm"],
        WN=config["wn"],
        STAGES=config["stages"],
        SHARED=shared_bytes(problem, config),
        INSTRUCTION=f"cutlass::gemm::GemmShape<16, 8, {_DEPTH[problem.dtype]}>",
        OPERATOR="cutlass::arch::OpMultiplyAddSaturate"
        if integer
        else "cutlass::arch::OpMultiplyAdd",
    )


def _includes() -> list[str]:
    flags: list[str] = []
    for pattern in ("cutlass_library/source/include", "nvidia/*/include", "nvidia/*/include/cccl"):
        paths = [path for folder in sys.path for path in sorted(Path(folder).glob(pattern))]
        if not paths:
            raise MissingToolError(
                f"CUTLASS needs headers that are not installed ({pattern})",
                hint="pip install 'fewbit[cuda]'",
            )
        flags += [f"-I{path}" for path in paths]
    return flags


def shared_bytes(problem: Convolution, config: Config) -> int:
    """Return the bytes of the operands' ring; the epilogue takes less."""
    return config["stages"] * (config["bm"] + config["bn"]) * config["bk"]


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    text = cutlass_source(problem, config)
    image = compile_source(
        text, arch, "-default-device", "-diag-suppress=20012", *_includes()
    ).image
    blocks = (ceil_div(problem.pixels, config["bm"]), ceil_div(problem.filters, config["bn"]), 1)
    threads = (config["bm"] // config["wm"]) * (config["bn"] // config["wn"]) * 32
    pointers = (Pointer("x"), Pointer("w"), Pointer("y"))
    shared = shared_bytes(problem, config)
    launch = Launch(0, "conv2d_cutlass", blocks, threads, pointers, shared)
    return Plan("conv2d_cutlass", arch.code, problem.buffers(), (launch,), (image,))


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    configs: list[Config] = [
        {"bm": bm, "bn": bn, "bk": bk, "wm": wm, "wn": wn, "stages": stages}
        for bm, bn, wm, wn in (
            (128, 64, 64, 32),
            (128, 128, 64, 64),
            (256, 64, 64, 64),
            (64, 64, 32, 32),
        )
        for bk, stages in ((64, 4), (128, 3))
        if bn <= max(64, problem.filters)
    ]
    return [config for config in configs if arch.fits(shared_bytes(problem, config))]


CUTLASS = Family("cutlass", "CUTLASS's implicit GEMM for Ampere", _refuse, _configs, _build)
