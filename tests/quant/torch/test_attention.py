"""Attention with few bits: against torch, against `mico.attention`, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from fewbit.base.typed_torch import backward
from fewbit.dialects import mico
from fewbit.errors import ShapeError
from fewbit.numerics import WIDTHS, Width
from fewbit.quant import AttentionScheme, QuantAttention, fake_quant_attention
from tests.interpreter.mico.test_layers import run

every_width = pytest.mark.parametrize("width", WIDTHS, ids=str)


def inputs(*heads: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, h, 5, 8, generator=generator) for h in heads or (4, 4, 4)]


def bits(scheme: AttentionScheme) -> dict[str, Any]:
    parts = {name: getattr(scheme, name) for name in ("query", "key", "value", "score")}
    return {f"{name}_bits": width for name, width in parts.items() if width is not None}


@pytest.mark.parametrize("causal", [False, True])
def test_without_widths_it_is_torch(causal: bool) -> None:
    q, k, v = inputs()
    expected = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    for exact in (False, True):
        found = fake_quant_attention(q, k, v, "fp", causal=causal, exact=exact)
        assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("text", ["q8k8v8s8", "q4k4", "v4", "s8", "q2k2v2s2", "q1k1v1.58s8"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"scale": 0.3}, {"mask": True}])
def test_exact_mode_is_the_interpreter(text: str, options: dict[str, Any]) -> None:
    q, k, v = inputs()
    scheme, named = AttentionScheme.of(text), dict(options)
    if named.pop("mask", False):
        named["mask"] = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    numpy_named = {n: x.numpy() if isinstance(x, torch.Tensor) else x for n, x in named.items()}
    (expected,) = run(
        mico.AttentionOp, q.numpy(), k.numpy(), v.numpy(), **numpy_named, **bits(scheme)
    )
    result = fake_quant_attention(q, k, v, scheme, exact=True, **named).numpy()
    assert np.linalg.norm(result - expected) <= 1e-5 * np.linalg.norm(expected)
    trained = fake_quant_attention(q, k, v, scheme, **named).numpy()
    assert np.linalg.norm(trained - expected) <= 0.05 * np.linalg.norm(expected)


@every_width
@pytest.mark.parametrize("part", ["q{0}k{0}", "v{0}", "s{0}", "q{0}k{0}v{0}s{0}"])
def test_gradients_are_not_zero(width: Width, part: str) -> None:
    q, k, v = (x.requires_grad_() for x in inputs())
    backward(fake_quant_attention(q, k, v, part.format(width)).square().sum())
    for x in (q, k, v):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert (x.grad != 0).any()


def test_fewer_key_heads_are_repeated() -> None:
    q, k, v = inputs(4, 2, 2)
    expected = fake_quant_attention(
        q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), "q8k8v8s8"
    )
    assert torch.equal(fake_quant_attention(q, k, v, "q8k8v8s8"), expected)
    with pytest.raises(ShapeError, match="3 key heads"):
        fake_quant_attention(q, torch.ones(2, 3, 5, 8), torch.ones(2, 3, 5, 8), "q8k8")


def test_boolean_masks_keep() -> None:
    q, k, v = inputs()
    keep = torch.ones(5, 5).tril().bool()
    masked = fake_quant_attention(q, k, v, "q8k8v8s8", mask=keep)
    assert torch.equal(masked, fake_quant_attention(q, k, v, "q8k8v8s8", causal=True))


def test_the_module_is_the_function() -> None:
    q, k, v = inputs()
    module = QuantAttention("q4k4v8s8", causal=True, scale=0.5)
    expected = fake_quant_attention(q, k, v, "q4k4v8s8", causal=True, scale=0.5)
    assert torch.equal(module(q, k, v), expected)
    assert "q4k4v8s8" in repr(module)
    assert not module.state_dict()
