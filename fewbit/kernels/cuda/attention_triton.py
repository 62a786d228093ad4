"""Attention through Triton: every generation from Ampere on, and keys and values of 8 bits."""

from __future__ import annotations

from math import e, log2

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.plan import Plan, Pointer, Scalar
from fewbit.kernels.cuda.triton_source import compile_triton, pointer


def _refuse(problem: Attention, arch: Arch) -> str | None:
    if not arch.has_async_copies:
        return "Triton has no tensor cores before Ampere"
    if problem.strides:
        return "its heads are not contiguous"
    if problem.kv_dtype == "f8" and arch.compute < 89:
        return f"{arch.name} has no f8"
    return None


def _build(problem: Attention, config: Config, arch: Arch) -> Plan:
    scaled = problem.kv_dtype != problem.dtype
    buffers = problem.buffers()
    scales = ("k_scale", "v_scale") if scaled else ("lengths", "lengths")
    kernel = compile_triton(
        "attention",
        "attention",
        {
            "q": pointer(problem.dtype),
            "k": pointer(problem.kv_dtype),
            "v": pointer(problem.kv_dtype),
            "lengths": pointer("i32"),
            "k_scale": pointer("f32"),
            "v_scale": pointer("f32"),
            "y": pointer(problem.dtype),
            "c": "fp32",
        },
        {
            "HEADS": problem.heads,
            "KV_HEADS": problem.kv_heads,
            "SQ": problem.queries,
            "SK": problem.keys,
            "D": problem.size,
            "DP": max(16, 1 << (problem.size - 1).bit_length()),
            "CAUSAL": problem.causal,
            "RAGGED": problem.ragged,
            "SCALED": scaled,
            "BM": config["bm"],
            "BN": config["bn"],
        },
        arch,
        warps=config["warps"],
        stages=config["stages"],
    )
    names = ("q", "k", "v", "lengths", *scales, "y")
    arguments = (*(Pointer(name) for name in names), Scalar("f32", problem.scale * log2(e)))
    grid = (ceil_div(problem.queries, config["bm"]), problem.batch * problem.heads, 1)
    return Plan(
        "attention_triton",
        arch.code,
        buffers,
        (kernel.launch(0, grid, arguments),),
        (kernel.image,),
    )


def _configs(problem: Attention, arch: Arch) -> list[Config]:
    return [
        {"bm": bm, "bn": bn, "warps": warps, "stages": stages}
        for bm, bn, warps, stages in (
            (128, 64, 8, 3),
            (128, 128, 8, 2),
            (128, 128, 8, 3),
            (64, 64, 4, 3),
            (128, 64, 4, 3),
            (64, 128, 4, 2),
            (128, 64, 8, 2),
            (64, 32, 4, 3),
        )
        if stages * 2 * bn * problem.size * 2 + bm * problem.size * 2 <= arch.shared
    ]


ATTENTION_TRITON = Family("triton", "Triton's language", _refuse, _configs, _build)
