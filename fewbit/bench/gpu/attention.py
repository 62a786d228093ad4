"""Attention on the GPU: data, the reference, and PyTorch's backends as yardsticks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from fewbit.bench.gpu.subject import TYPES
from fewbit.kernels.cuda.attention import Attention

BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
_LEVELS = {"i8": 127.0, "f8": 448.0}


def data(problem: Attention, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(seed)
    tensors: dict[str, torch.Tensor] = {}
    for name, buffer in problem.buffers().items():
        if name in "qkv":
            tensors[name] = torch.randn(buffer.shape, device="cuda", generator=generator)
    if problem.kv_dtype != problem.dtype:
        for name in "kv":
            scale = tensors[name].abs().amax(-1) / _LEVELS[problem.kv_dtype]
            scaled = tensors[name] / scale[..., None]
            tensors[name] = scaled.round() if problem.kv_dtype == "i8" else scaled
            tensors[f"{name}_scale"] = scale.contiguous()
    for name in "qkv":
        tensors[name] = tensors[name].to(TYPES[problem.buffers()[name].dtype])
    low = max(1, problem.keys // 3)
    lengths = torch.randint(
        low, problem.keys + 1, (problem.batch,), generator=generator, device="cuda"
    )
    tensors["lengths"] = lengths.int()[: problem.buffers()["lengths"].shape[0]].contiguous()
    return tensors


def _mask(problem: Attention, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    key = torch.arange(problem.keys, device="cuda")
    seen = torch.ones(
        problem.batch, 1, problem.queries, problem.keys, dtype=torch.bool, device="cuda"
    )
    if problem.causal:
        row = torch.arange(problem.queries, device="cuda") + problem.keys - problem.queries
        seen &= key[None, :] <= row[:, None]
    if problem.ragged:
        seen &= (key[None, :] < tensors["lengths"][:, None])[:, None, None, :]
    return seen


def reference(problem: Attention, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """Compute attention in float64; a query that sees no key gives zeros."""
    k, v = (tensors[name].double() for name in "kv")
    if problem.kv_dtype != problem.dtype:
        k, v = (t * tensors[f"{n}_scale"][..., None].double() for n, t in (("k", k), ("v", v)))
    shared = problem.heads // problem.kv_heads
    k, v = (t.repeat_interleave(shared, 1) for t in (k, v))
    seen = _mask(problem, tensors)
    out: list[torch.Tensor] = []
    for b in range(problem.batch):
        scores = tensors["q"][b].double() @ k[b].transpose(-1, -2) * problem.scale
        scores = scores.masked_fill(~seen[b], float("-inf"))
        out.append(torch.softmax(scores, -1).nan_to_num(0.0) @ v[b])
    return torch.stack(out)


def yardstick(
    backend: str, problem: Attention, tensors: dict[str, torch.Tensor]
) -> Callable[[], torch.Tensor]:
    q, k, v = (tensors[name] for name in "qkv")

    def call() -> torch.Tensor:
        with sdpa_kernel(BACKENDS[backend]):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=problem.causal
            )

    return call
