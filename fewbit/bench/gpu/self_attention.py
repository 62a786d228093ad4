"""Self-attention with its projections on the GPU: data, the reference, and PyTorch's ways."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F  # noqa: N812

from fewbit.bench.gpu.subject import TYPES
from fewbit.kernels.cuda.self_attention import SelfAttention

Tensors = dict[str, torch.Tensor]


def data(problem: SelfAttention, seed: int = 0) -> Tensors:
    generator = torch.Generator("cuda").manual_seed(seed)
    tensors: Tensors = {}
    for name, buffer in problem.buffers().items():
        if buffer.role != "in":
            continue
        drawn = torch.randn(buffer.shape, device="cuda", generator=generator)
        if name.endswith("weight"):
            drawn *= problem.width**-0.5
        tensors[name] = drawn.to(TYPES[buffer.dtype])
    return tensors


def reference(problem: SelfAttention, tensors: Tensors) -> torch.Tensor:
    """Compute the layer in float64, from the same rounded inputs."""
    return _compute(problem, {name: tensor.double() for name, tensor in tensors.items()})


def _compute(problem: SelfAttention, given: Tensors) -> torch.Tensor:
    projected = F.linear(given["x"], given["qkv_weight"], given["qkv_bias"])
    split = projected.reshape(*projected.shape[:-1], 3, problem.heads, problem.size)
    q, k, v = split.permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=problem.causal)
    return F.linear(y.transpose(1, 2).flatten(2), given["out_weight"], given["out_bias"])


def yardsticks(problem: SelfAttention, tensors: Tensors) -> dict[str, Callable[[], torch.Tensor]]:
    """Return nn.Linear with SDPA, in the backend PyTorch chooses, and nn.MultiheadAttention."""
    dtype = TYPES[problem.dtype]
    given = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    transposed = given["x"].transpose(0, 1)

    def module() -> torch.Tensor:
        y, _ = F.multi_head_attention_forward(
            transposed, transposed, transposed, problem.width, problem.heads,
            given["qkv_weight"], given["qkv_bias"], None, None, False, 0.0,
            given["out_weight"], given["out_bias"], training=False, need_weights=False,
        )  # fmt: skip
        return y.transpose(0, 1)

    functions = {"linear + sdpa": lambda: _compute(problem, given)}
    return functions if problem.causal else {**functions, "multi_head_attention_forward": module}
