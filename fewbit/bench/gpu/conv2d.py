"""Convolutions on the GPU: data, the reference, the yardstick, and the ladder measured."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fewbit.bench.gpu.subject import TYPES
from fewbit.kernels.cuda.convolution import Convolution

_CHUNK = 1 << 27
"""Elements of the unfolded input that the reference has at a time."""


def data(problem: Convolution, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return random inputs of a convolution, in its layout."""
    generator = torch.Generator("cuda").manual_seed(seed)
    tensors: dict[str, torch.Tensor] = {}
    for name, buffer in problem.buffers().items():
        if buffer.role != "in":
            continue
        if problem.dtype == "i8":
            tensor = torch.randint(-128, 128, buffer.shape, device="cuda", generator=generator)
        else:
            tensor = torch.randn(buffer.shape, device="cuda", generator=generator)
            if name == "w":
                tensor /= problem.depth**0.5
        tensors[name] = tensor.to(TYPES[buffer.dtype]).contiguous()
    return tensors


def inputs_of(
    family: str, problem: Convolution, tensors: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the tensors as a family wants them; depthwise filters are repacked when compiled."""
    if not family.startswith("depthwise"):
        return tensors
    w = tensors["w"].to(torch.int32 if problem.dtype == "i8" else torch.float32)
    return {
        **tensors,
        "w": w[..., 0].movedim(0, -1).contiguous() if problem.layout == "nhwc" else w,
    }


def first_channels(problem: Convolution, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as PyTorch sees it: NCHW in name, in its own order in memory."""
    return tensor.permute(0, 3, 1, 2) if problem.layout == "nhwc" else tensor


def reference(problem: Convolution, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the result in float64, in the problem's layout."""
    x = first_channels(problem, tensors["x"])
    w = first_channels(problem, tensors["w"]).double()
    g = problem.groups
    rows: list[torch.Tensor] = []
    step = max(1, _CHUNK // (problem.depth * g * problem.out_height * problem.out_width))
    for start in range(0, problem.batch, step):
        columns = torch.nn.functional.unfold(
            x[start : start + step].double(),
            (problem.kh, problem.kw),
            problem.dilation,
            problem.padding,
            problem.stride,
        )
        columns = columns.reshape(columns.shape[0], g, problem.depth, -1)
        y = w.reshape(g, problem.filters // g, problem.depth) @ columns
        rows.append(y.reshape(-1, problem.filters, problem.out_height, problem.out_width))
    out = torch.cat(rows)
    return out.permute(0, 2, 3, 1).contiguous() if problem.layout == "nhwc" else out


def cudnn(problem: Convolution, tensors: dict[str, torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Return the same convolution by cuDNN, with the algorithm that it finds best."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = problem.dtype == "tf32"
    x, w = (first_channels(problem, tensors[name]) for name in ("x", "w"))
    more = (problem.stride, problem.padding, problem.dilation, problem.groups)
    return lambda: torch.nn.functional.conv2d(x, w, None, *more)
