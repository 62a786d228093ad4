"""Attention with quantized queries, keys, values and scores, through which gradients pass.

The semantics are those of `mico.attention`: one scale for each token, q · kᵀ an integer matmul, the
softmax in floats, its rows quantized, and the matmul with the rounded values in floats. In
`exact` mode q · kᵀ is computed in integers and scaled in the order the interpreter uses.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.errors import ShapeError
from fewbit.quant.attention_scheme import AttentionScheme, AttentionSchemeLike
from fewbit.quant.torch.fake_quant import fake_quant_activation, quantize_activation


def fake_quant_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scheme: AttentionSchemeLike,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    exact: bool = False,
) -> Tensor:
    """softmax(q · kᵀ · scale + mask) · v over [..., tokens, head size].

    A boolean mask keeps, a float mask is added. Fewer key heads than query heads are repeated.
    """
    scheme = AttentionScheme.of(scheme)
    key, value = (_repeat_heads(x, query) for x in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if exact:
        with torch.no_grad():
            scores = _mask(_exact_scores(query, key, scheme, factor), mask, causal)
            weights = fake_quant_activation(_softmax(scores), scheme.score)
            rounded = fake_quant_activation(value.float(), scheme.value)
            return (weights.double() @ rounded.double()).to(query.dtype)
    q = fake_quant_activation(query, scheme.query)
    k = fake_quant_activation(key, scheme.key)
    scores = _mask((q @ k.transpose(-1, -2)) * factor, mask, causal)
    weights = fake_quant_activation(scores.softmax(-1), scheme.score)
    return weights @ fake_quant_activation(value, scheme.value)


class QuantAttention(nn.Module):
    """`fake_quant_attention` as a module, in place of `scaled_dot_product_attention`."""

    def __init__(
        self, scheme: AttentionSchemeLike, causal: bool = False, scale: float | None = None
    ) -> None:
        super().__init__()
        self.scheme = AttentionScheme.of(scheme)
        self.causal = causal
        self.scale = scale
        self.exact = False

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        return fake_quant_attention(
            query,
            key,
            value,
            self.scheme,
            mask=mask,
            causal=self.causal,
            scale=self.scale,
            exact=self.exact,
        )

    def extra_repr(self) -> str:
        return f"scheme={self.scheme}, causal={self.causal}"


def _repeat_heads(x: Tensor, query: Tensor) -> Tensor:
    if x.dim() < 3 or x.shape[-3] == query.shape[-3]:
        return x
    if query.shape[-3] % x.shape[-3] != 0:
        raise ShapeError(f"{x.shape[-3]} key heads do not divide {query.shape[-3]} query heads")
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], dim=-3)


def _exact_scores(query: Tensor, key: Tensor, scheme: AttentionScheme, factor: float) -> Tensor:
    if scheme.query is None or scheme.key is None:
        return ((query.double() @ key.double().transpose(-1, -2)) * factor).float()
    q, k = quantize_activation(query, scheme.query), quantize_activation(key, scheme.key)
    acc = q.values.double() @ k.values.double().transpose(-1, -2)
    scaled = acc.float() * q.scale[..., None] * k.scale[..., None, :]
    return scaled * torch.tensor(factor, dtype=torch.float32)


def _softmax(scores: Tensor) -> Tensor:
    return scores.double().softmax(-1).float()


def _mask(scores: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    if causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, float("-inf"))
    return scores + mask
