"""Depthwise convolutions: a filter a channel. They move bytes and compute almost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer

_REGISTERS = 176
"""The most registers of a thread: with more it would spill, or run alone."""


def pack(problem: Convolution, w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return weights [C, KH, KW, 1] as [KH, KW, C], in the accumulators' type: loads coalesce."""
    wide = w.astype(np.int32 if problem.dtype == "i8" else np.float32)
    if problem.layout == "nchw":
        return wide
    return np.ascontiguousarray(np.moveaxis(wide[..., 0], 0, -1))


def refuse(problem: Convolution, arch: Arch) -> str | None:
    if not problem.is_depthwise:
        return "it is not depthwise"
    if problem.dtype == "tf32":
        return "tf32 is for tensor cores"
    if problem.kh * problem.kw > 64:
        return "its filter has more than 64 taps"
    return None


def depthwise_source(problem: Convolution, config: Config) -> str:
    return source(
        "prelude.cu",
        "convolution.cu",
        "depthwise.cu",
        **problem.defines(),
        VEC=config["vec"],
        TH=config["th"],
        TW=config["tw"],
        THREADS=config["threads"],
    )


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(depthwise_source(problem, config), arch).image
    work = problem.batch * problem.channels // config["vec"]
    work *= ceil_div(problem.out_height, config["th"]) * ceil_div(problem.out_width, config["tw"])
    launch = Launch(
        0,
        "depthwise",
        (ceil_div(work, config["threads"]), 1, 1),
        config["threads"],
        (Pointer("x"), Pointer("w"), *problem.arguments()),
    )
    return Plan("depthwise", arch.code, buffers(problem), (launch,), (image,))


def buffers(problem: Convolution) -> dict[str, Buffer]:
    """Return the problem's, with repacked filters."""
    plain = problem.buffers()
    shape = plain["w"].shape
    if problem.layout == "nhwc":
        shape = (*shape[1:3], shape[0])
    return {**plain, "w": Buffer("i32" if problem.dtype == "i8" else "f32", shape)}


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    widths = (1,)
    if problem.layout == "nhwc":
        widths = tuple(
            v for v in (4, 8, 2, 1) if problem.channels % v == 0 and v * problem.unit <= 16
        )[:3]
    configs: list[Config] = [
        {"vec": vec, "th": th, "tw": tw, "threads": threads}
        for vec in widths
        for th, tw in (
            (1, 4),
            (1, 2),
            (2, 2),
            (2, 4),
            (4, 2),
            (4, 4),
            (1, 1),
            (1, 7),
            (2, 7),
            (4, 1),
        )
        for threads in (128, 256)
        if registers(problem, vec, th, tw) <= _REGISTERS
    ]
    return configs or [{"vec": 1, "th": 1, "tw": 1, "threads": 128}]


def registers(problem: Convolution, vec: int, th: int, tw: int) -> int:
    per = -(-problem.unit * vec // 4)
    columns = (tw - 1) * problem.stride[1] + (problem.kw - 1) * problem.dilation[1] + 1
    return th * tw * vec + problem.kh * problem.kw * vec + columns * per + 24


DEPTHWISE = Family("depthwise", "a thread some channels and outputs", refuse, _configs, _build)
