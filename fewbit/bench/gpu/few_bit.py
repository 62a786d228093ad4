"""Few-bit matmuls on the GPU: data, the reference, and PyTorch's kernels as yardsticks."""

from __future__ import annotations

import numpy as np
import torch

from fewbit.base.typed_torch import from_numpy
from fewbit.bench.gpu.subject import TYPES
from fewbit.kernels.cuda.few_bit import FewBitMatmul, repack
from fewbit.numerics.packing import pack


def data(problem: FewBitMatmul, seed: int = 0) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return buffers of a plan, and the weights [n, k] that they stand for, in float64."""
    rng = np.random.default_rng(seed)
    width = problem.width
    if width.is_binary:
        q = rng.integers(0, 2, (problem.n, problem.k)) * 2 - 1
    else:
        q = rng.integers(width.qmin, width.qmax + 1, (problem.n, problem.k))
    q = q.astype(np.int8)
    scale = rng.uniform(0.5, 1.5, (problem.groups, problem.n)).astype(np.float32) / problem.k**0.5
    padded = np.zeros(problem.buffers()["scale"].shape, np.float32)
    padded[:, : problem.n] = scale
    words = repack(problem, pack(q, width), width)
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = (problem.m, problem.k)
    if problem.dtype == "i8":
        x = torch.randint(-127, 128, shape, device="cuda", generator=generator)
    else:
        x = torch.randn(shape, device="cuda", generator=generator)
    rows = problem.buffers()["row_scale"].shape
    tensors = {
        "x": x.to(TYPES[problem.dtype]),
        "q": from_numpy(words.view(np.int32)).cuda(),
        "scale": from_numpy(padded).cuda(),
        "row_scale": torch.rand(rows, device="cuda", generator=generator) * 0.01 + 0.001,
    }
    spread = from_numpy(scale).cuda().double().T.repeat_interleave(problem.k // problem.groups, 1)
    return tensors, from_numpy(q).cuda().double() * spread


def reference(
    problem: FewBitMatmul, tensors: dict[str, torch.Tensor], weights: torch.Tensor
) -> torch.Tensor:
    y = tensors["x"].double() @ weights.T
    return y * tensors["row_scale"].double()[:, None] if problem.dtype == "i8" else y
