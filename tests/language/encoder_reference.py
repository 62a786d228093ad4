"""Encoders in plain numpy, written from the families' own descriptions and in their own words.

It takes a configuration and tensors as a Hugging Face folder has them, so it shares nothing with
the encoder that is compiled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def states(s: dict[str, Any], w: dict[str, Array], tokens: Array) -> Array:
    """Return the last states of some tokens, [n, width]."""
    family = s["model_type"]
    if family == "t5":
        return _t5(s, w, tokens)
    distil = family == "distilbert"
    heads = s["n_heads" if distil else "num_attention_heads"]
    depth = s["n_layers" if distil else "num_hidden_layers"]
    first = {"roberta": 2, "xlm-roberta": s.get("pad_token_id", 1) + 1, "mpnet": 2}.get(family, 0)
    positions = first + np.arange(len(tokens))
    x = w["embeddings.word_embeddings.weight"][tokens]
    x = x + w["embeddings.position_embeddings.weight"][positions]
    if not distil and family != "mpnet":
        x = x + w["embeddings.token_type_embeddings.weight"][0]

    def norm(x: Array, name: str) -> Array:
        eps = s.get("layer_norm_eps", 1e-12)
        centred = x - x.mean(-1, keepdims=True)
        root = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return centred / root * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    bias = np.zeros((heads, 1, 1))
    if family == "mpnet":
        bias = position_bias(w["encoder.relative_attention_bias.weight"], len(tokens), 32, 128)
    x = norm(x, "embeddings.LayerNorm")
    for number in range(depth):
        layer = f"{'transformer' if distil else 'encoder'}.layer.{number}"
        if distil:
            parts = [f"{layer}.attention.{part}_lin" for part in ("q", "k", "v", "out")]
            middle, last = f"{layer}.sa_layer_norm", f"{layer}.output_layer_norm"
            mlp = f"{layer}.ffn.lin1", f"{layer}.ffn.lin2"
        else:
            own = f"{layer}.attention.self"
            parts = [
                f"{own}.query",
                f"{own}.key",
                f"{own}.value",
                f"{layer}.attention.output.dense",
            ]
            middle, last = f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"
            mlp = f"{layer}.intermediate.dense", f"{layer}.output.dense"
        if family == "mpnet":
            parts = [f"{layer}.attention.attn.{part}" for part in "qkvo"]
            middle = f"{layer}.attention.LayerNorm"
        q, k, v = (linear(x, name) for name in parts[:3])
        scale = math.sqrt(x.shape[-1] // heads)
        x = norm(x + linear(attend(q, k, v, heads, bias, scale), parts[3]), middle)
        hidden = gelu(linear(x, mlp[0]), s.get("hidden_act", "gelu"))
        x = norm(x + linear(hidden, mlp[1]), last)
    return x


def _t5(s: dict[str, Any], w: dict[str, Array], tokens: Array) -> Array:
    def norm(x: Array, name: str) -> Array:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w[f"{name}.weight"]

    def linear(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T

    buckets, far = s["relative_attention_num_buckets"], s["relative_attention_max_distance"]
    table = w["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    bias = position_bias(table, len(tokens), buckets, far)
    x = w["shared.weight"][tokens]
    for number in range(s["num_layers"]):
        block = f"encoder.block.{number}.layer"
        h = norm(x, f"{block}.0.layer_norm")
        q, k, v = (linear(h, f"{block}.0.SelfAttention.{part}") for part in "qkv")
        mixed = attend(q, k, v, s["num_heads"], bias, 1.0)
        x = x + linear(mixed, f"{block}.0.SelfAttention.o")
        h, mlp = norm(x, f"{block}.1.layer_norm"), f"{block}.1.DenseReluDense"
        if s["feed_forward_proj"] == "relu":
            h = np.maximum(linear(h, f"{mlp}.wi"), 0)
        else:
            h = gelu(linear(h, f"{mlp}.wi_0"), "gelu_new") * linear(h, f"{mlp}.wi_1")
        x = x + linear(h, f"{mlp}.wo")
    return norm(x, "encoder.final_layer_norm")


def attend(q: Array, k: Array, v: Array, heads: int, bias: Array, scale: float) -> Array:
    q, k, v = (each.reshape(len(each), heads, -1) for each in (q, k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / scale + bias
    values = np.exp(scores - scores.max(-1, keepdims=True))
    weights = values / values.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v).reshape(len(q), -1)


def position_bias(table: Array, length: int, count: int, far: int) -> Array:
    bias = np.zeros((table.shape[1], length, length))
    for query in range(length):
        for key in range(length):
            bias[:, query, key] = table[bucket(key - query, count, far)]
    return bias


def bucket(relative: int, count: int, far: int) -> int:
    """Return the bucket of one relative position, as T5's paper describes it."""
    half, distance = count // 2, abs(relative)
    exact = half // 2
    if distance >= exact:
        grown = math.log(distance / exact) / math.log(far / exact) * (half - exact)
        distance = min(exact + int(grown), half - 1)
    return distance + (half if relative > 0 else 0)


def gelu(x: Array, kind: str) -> Array:
    if kind == "gelu_new":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
