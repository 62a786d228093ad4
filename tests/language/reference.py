"""Decoders in plain numpy, written from the families' own descriptions and in their own words.

It takes a configuration and tensors as a Hugging Face folder has them, all tokens at once and no
cache, so it shares nothing with the decoder that is compiled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def logits(family: str, settings: dict[str, Any], w: dict[str, Array], tokens: Array) -> Array:
    """Return logits of the last of some tokens."""
    if family == "gpt2":
        return _gpt2(settings, w, tokens)
    s, gemma = settings, family.startswith("gemma")
    n, heads, kv_heads = len(tokens), s["num_attention_heads"], s["num_key_value_heads"]
    width = s.get("head_dim", s["hidden_size"] // heads)
    x = w["model.embed_tokens.weight"][tokens]
    if gemma:
        x = x * math.sqrt(s["hidden_size"])

    def norm(x: Array, name: str) -> Array:
        scale = w[f"{name}.weight"]
        if family == "stablelm":
            centred = x - x.mean(-1, keepdims=True)
            root = np.sqrt((centred**2).mean(-1, keepdims=True) + s["layer_norm_eps"])
            return centred / root * scale + w[f"{name}.bias"]
        root = np.sqrt((x**2).mean(-1, keepdims=True) + s["rms_norm_eps"])
        return x / root * (1 + scale if gemma else scale)

    def linear(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", np.float32(0))

    for number in range(s["num_hidden_layers"]):
        layer, attention = f"model.layers.{number}", f"model.layers.{number}.self_attn"
        h = norm(x, f"{layer}.input_layernorm")
        if family == "phi3":
            cuts = np.cumsum([heads * width, kv_heads * width])
            q, k, v = np.split(linear(h, f"{attention}.qkv_proj"), cuts, -1)
        else:
            q, k, v = (linear(h, f"{attention}.{part}_proj") for part in "qkv")
        q, k, v = (each.reshape(n, -1, width) for each in (q, k, v))
        if family in ("qwen3", "gemma3_text"):
            q, k = norm(q, f"{attention}.q_norm"), norm(k, f"{attention}.k_norm")
        base, window = layer_kind(family, s, number)
        q, k = (rotate(each, s, base) for each in (q, k))
        scale = s.get("query_pre_attn_scalar", width) if family != "gemma" else width
        scores = np.einsum("qhd,khd->hqk", q, np.repeat(k, heads // kv_heads, 1)) / math.sqrt(scale)
        if family == "gemma2":
            scores = 50 * np.tanh(scores / 50)
        mixed = np.einsum(
            "hqk,khd->qhd", softmax(scores, window), np.repeat(v, heads // kv_heads, 1)
        )
        mixed = mixed.reshape(n, -1)
        if family == "bitnet":
            mixed = norm(mixed, f"{attention}.attn_sub_norm")
        a = linear(mixed, f"{attention}.o_proj")
        normed = family in ("gemma2", "gemma3_text")
        x = x + (norm(a, f"{layer}.post_attention_layernorm") if normed else a)
        before = "pre_feedforward_layernorm" if normed else "post_attention_layernorm"
        h = norm(x, f"{layer}.{before}")
        if family == "phi3":
            gate, up = np.split(linear(h, f"{layer}.mlp.gate_up_proj"), 2, -1)
        else:
            gate, up = linear(h, f"{layer}.mlp.gate_proj"), linear(h, f"{layer}.mlp.up_proj")
        hidden = (gelu(gate) if gemma else gate / (1 + np.exp(-gate))) * up
        if family == "bitnet":
            hidden = norm(np.maximum(gate, 0) ** 2 * up, f"{layer}.mlp.ffn_sub_norm")
        m = linear(hidden, f"{layer}.mlp.down_proj")
        x = x + (norm(m, f"{layer}.post_feedforward_layernorm") if normed else m)
    last = norm(x, "model.norm")[-1]
    out = w.get("lm_head.weight", w["model.embed_tokens.weight"]) @ last
    return 30 * np.tanh(out / 30) if family == "gemma2" else out


def layer_kind(family: str, s: dict[str, Any], number: int) -> tuple[float, int | None]:
    """Return the base of a layer's angles, and how far its attention reaches."""
    base, window = s.get("rope_theta", 10_000.0), s.get("sliding_window")
    if family == "gemma2":
        return base, None if number % 2 else window
    if family == "gemma3_text":
        full = s["layer_types"][number] == "full_attention"
        return (1e6, None) if full else (10_000.0, window)
    return base, window


def rotate(x: Array, s: dict[str, Any], base: float) -> Array:
    width = int(x.shape[-1] * s.get("partial_rotary_factor", 1.0))
    frequencies = base ** -(np.arange(0, width, 2) / width)
    if scaling := s.get("rope_scaling"):
        frequencies = [llama3(f, scaling) for f in frequencies]
    angles = np.outer(np.arange(len(x)), frequencies)[:, None]
    a, b, rest = x[..., : width // 2], x[..., width // 2 : width], x[..., width:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


def llama3(frequency: float, s: dict[str, Any]) -> float:
    length, trained = 2 * math.pi / frequency, s["original_max_position_embeddings"]
    if length < trained / s["high_freq_factor"]:
        return frequency
    if length > trained / s["low_freq_factor"]:
        return frequency / s["factor"]
    low, high = s["low_freq_factor"], s["high_freq_factor"]
    share = (trained / length - low) / (high - low)
    return (1 - share) * frequency / s["factor"] + share * frequency


def softmax(scores: Array, window: int | None) -> Array:
    rows, columns = map(int, scores.shape[1:])
    q: Array = np.arange(rows)[:, None]
    k: Array = np.arange(columns)
    hidden: Array = (k > q) | (k <= q - (window or rows))
    values = np.exp(np.where(hidden, -np.inf, scores - scores.max(-1, keepdims=True)))
    return values / values.sum(-1, keepdims=True)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gpt2(s: dict[str, Any], w: dict[str, Array], tokens: Array) -> Array:
    n, heads, width = len(tokens), s["n_head"], s["n_embd"] // s["n_head"]
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:n]

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        root = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return centred / root * w[f"{name}.weight"] + w[f"{name}.bias"]

    for number in range(s["n_layer"]):
        layer = f"transformer.h.{number}"

        def linear(x: Array, name: str, layer: str = layer) -> Array:
            return x @ w[f"{layer}.{name}.weight"] + w[f"{layer}.{name}.bias"]

        h = linear(norm(x, f"{layer}.ln_1"), "attn.c_attn")
        q, k, v = (each.reshape(n, heads, width) for each in np.split(h, 3, -1))
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(width)
        mixed = np.einsum("hqk,khd->qhd", softmax(scores, None), v).reshape(n, -1)
        x = x + linear(mixed, "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, f"{layer}.ln_2"), "mlp.c_fc")), "mlp.c_proj")
    return w["transformer.wte.weight"] @ norm(x, "transformer.ln_f")[-1]
