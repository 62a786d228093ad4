"""The rung of IREE: the convolution as linalg, compiled ahead of time, and run by IREE's runtime.

The text has channels where the problem has them, filters in the order that IREE's strategies know
(repacked when compiled, as for other kernels), and sums in f32. Modules are kept in a folder, so
that a machine which has the GPU and IREE's runtime, but not its compiler, can run them.

IREE's runtime has streams of its own, in which our events are not. Its kernels are timed by
PyTorch's profiler, which sees all kernels of the process; where it sees none, by the wall clock.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution

if TYPE_CHECKING:
    import torch

NAME = "iree"
ABOUT = "linalg through IREE (iree-cuda)"
SUMS = {"f32": "f32", "f16": "f32", "i8": "i32"}
"""Types of sums; tf32 IREE does not have, and bf16 its runtime's arrays do not."""
ROUNDS = 10


def refuse(problem: Convolution) -> str | None:
    if problem.dtype not in SUMS:
        return f"there is no {problem.dtype} on this way"
    if problem.groups > 1 and not problem.is_depthwise:
        return "groups are not written for IREE"
    return None


def text_of(problem: Convolution) -> str:
    """Return the convolution as a function of image and filters."""
    buffers, last = problem.buffers(), problem.layout == "nhwc"
    dtype, sums, result = problem.dtype, SUMS[problem.dtype], problem.result
    x, y = buffers["x"].shape, buffers["y"].shape
    (ph, pw), f = problem.padding, problem.filters
    inner = problem.channels // problem.groups
    around = [0, ph, pw, 0] if last else [0, 0, ph, pw]
    padded = [size + 2 * pad for size, pad in zip(x, around, strict=True)]
    if problem.is_depthwise:
        name = "depthwise_conv_2d_nhwc_hwc" if last else "depthwise_conv_2d_nchw_chw"
        w = (problem.kh, problem.kw, f) if last else (f, problem.kh, problem.kw)
    else:
        name = "conv_2d_nhwc_hwcf" if last else "conv_2d_nchw_fchw"
        w = (problem.kh, problem.kw, inner, f) if last else (f, inner, problem.kh, problem.kw)
    zero = "0" if dtype == "i8" else "0.0"
    pads = ", ".join(map(str, around))
    lines = [
        f"func.func @main(%x: {_type(x, dtype)}, %w: {_type(w, dtype)}) -> {_type(y, result)} {{",
        f"  %none = arith.constant {zero} : {dtype}",
        f"  %zero = arith.constant {zero} : {sums}",
        f"  %image = tensor.pad %x low[{pads}] high[{pads}] {{",
        "  ^bb0(%i: index, %j: index, %k: index, %l: index):",
        f"    tensor.yield %none : {dtype}",
        f"  }} : {_type(x, dtype)} to {_type(padded, dtype)}",
        f"  %empty = tensor.empty() : {_type(y, sums)}",
        f"  %sums = linalg.fill ins(%zero : {sums}) outs(%empty : {_type(y, sums)}) "
        f"-> {_type(y, sums)}",
        f"  %y = linalg.{name} {{strides = dense<{list(problem.stride)}> : tensor<2xi64>, "
        f"dilations = dense<{list(problem.dilation)}> : tensor<2xi64>}} "
        f"ins(%image, %w : {_type(padded, dtype)}, {_type(w, dtype)}) "
        f"outs(%sums : {_type(y, sums)}) -> {_type(y, sums)}",
    ]
    given = "%y"
    if result != sums:
        kind, given = _type(y, result), "%rounded"
        lines += [
            f"  %small = tensor.empty() : {kind}",
            "  %rounded = linalg.map { arith.truncf } "
            f"ins(%y : {_type(y, sums)}) outs(%small : {kind})",
        ]
    return "\n".join([*lines, f"  return {given} : {_type(y, result)}", "}", ""])


def _type(shape: Any, element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def module_of(problem: Convolution, arch: Arch, folder: Path) -> Path:
    """Return the artifact for a problem, compiled if the folder has it not."""
    key = f"{problem}-{problem.dtype}-{problem.layout}-sm_{arch.compute}"
    place = folder / key
    if place.is_dir():
        return place
    if find_spec("iree.compiler") is None:
        raise UnsupportedError(
            "IREE's compiler is not installed",
            hint="--modules DIR has modules that were compiled elsewhere",
        )
    from fewbit.targets.compile import compile

    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{key}.mlir"
    source.write_text(text_of(problem), encoding="utf-8")
    compile(source, f"iree-cuda:sm_{arch.compute}", place, tuning_db="none")
    return place


class IreeSubject:
    """A module on the GPU with its data."""

    def __init__(self, place: Path, problem: Convolution, tensors: dict[str, torch.Tensor]) -> None:
        import fewbit

        if find_spec("iree.runtime") is None:
            raise UnsupportedError("IREE's runtime is not installed")
        runner: Any = fewbit.load(place).runner
        self.call = runner.prepare(*arrays_of(problem, tensors), device="cuda")

    def __call__(self) -> None:
        self.call.run()

    def result(self) -> torch.Tensor:
        from fewbit.base.typed_torch import from_numpy

        (y,) = self.call()
        return from_numpy(y).cuda()


def arrays_of(problem: Convolution, tensors: dict[str, torch.Tensor]) -> tuple[Any, Any]:
    """Return image and filters as the text takes them."""
    x, w = (tensors[name].cpu().numpy() for name in ("x", "w"))
    if problem.is_depthwise:
        w = w[..., 0].transpose(1, 2, 0) if problem.layout == "nhwc" else w[:, 0]
    elif problem.layout == "nhwc":
        w = w.transpose(1, 2, 3, 0)
    return x, w.copy()


def times_of(subject: IreeSubject, flush: Callable[[], object]) -> tuple[float, float, str]:
    """Return microseconds of a call with an empty cache and without, and how they were found."""
    cold, warm = _profile_kernels(subject, flush), _profile_kernels(subject, lambda: None)
    if cold and warm:
        return cold, warm, "kernels alone"
    return _time_calls(subject, flush), _time_calls(subject, lambda: None), "wall clock"


def _profile_kernels(subject: IreeSubject, before: Callable[[], object]) -> float:
    """Return what the kernels of a call take together; 0 where the profiler does not see them."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    subject()
    try:
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(ROUNDS):
                before()
                torch.cuda.synchronize()
                subject()
    except RuntimeError:
        return 0.0
    events = cast(list[Any], seen.events() or [])
    return sum(event.device_time for event in events if "dispatch" in event.name) / ROUNDS


def _time_calls(subject: IreeSubject, before: Callable[[], object]) -> float:
    import torch

    times: list[float] = []
    for _ in range(3 * ROUNDS):
        before()
        torch.cuda.synchronize()
        start = perf_counter()
        subject()
        times.append((perf_counter() - start) * 1e6)
    return median(times)
