"""The families of decoders that are read: what their configurations mean.

A family is a function from a configuration in Hugging Face's words to a `DecoderConfig`. Values
that a configuration leaves out are those of the family's own class in transformers. A choice that
the decoder does not have is refused here, before any weight is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, cast

from fewbit.errors import UnsupportedError
from fewbit.language.config import Activation, DecoderConfig, LayerKind, Rope

Settings = Mapping[str, Any]

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}
"""Names of activations in configurations."""
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
"""What every configuration must have."""


def read_config(settings: Settings) -> DecoderConfig:
    """Return what a configuration in Hugging Face's words describes."""
    name = str(settings.get("model_type", ""))
    if name not in FAMILIES:
        raise unknown_architecture(name)
    names = GPT2_SIZES if name == "gpt2" else {}
    settings = {
        **settings,
        **{ours: settings[theirs] for ours, theirs in names.items() if theirs in settings},
    }
    check_sizes(settings, SIZES)
    config = FAMILIES[name](settings)
    if config.heads % config.kv_heads:
        raise UnsupportedError(
            f"{config.heads} query heads do not share {config.kv_heads} key heads evenly"
        )
    return config


def unknown_architecture(
    name: str, otherwise: str = "", others: Collection[str] = ()
) -> UnsupportedError:
    """Return the error for an architecture that is not read; `otherwise` says how to go on.

    `others` are known as well, beside the decoders.
    """
    families = [*FAMILIES, *others]
    known = ", ".join(families)
    close = get_close_matches(name.lower(), families, n=1, cutoff=0.5)
    nearest = f"the nearest known is {close[0]}; " if close else ""
    return UnsupportedError(
        f"the architecture '{name}' is not one that fewbit reads",
        hint=f"{nearest}known: {known}{otherwise}",
    )


def check_sizes(settings: Settings, names: Iterable[str]) -> None:
    """Refuse a configuration that leaves out one of some sizes."""
    for name in names:
        value = settings.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise UnsupportedError(f"the configuration has no size '{name}'")


def _read_common(settings: Settings, **changes: Any) -> DecoderConfig:
    """Return what LLaMa's configuration says, which others begin from."""
    check_sizes(settings, ["intermediate_size"])
    heads, width = int(settings["num_attention_heads"]), int(settings["hidden_size"])
    head_width = int(settings.get("head_dim") or width // heads)
    rope = read_rope(settings, head_width)
    config = DecoderConfig(
        vocabulary=int(settings["vocab_size"]),
        width=width,
        hidden=int(settings["intermediate_size"]),
        heads=heads,
        kv_heads=int(settings.get("num_key_value_heads") or heads),
        head_width=head_width,
        longest=int(settings.get("max_position_embeddings") or 2048),
        layers=_windows(settings, rope),
        eps=float(settings.get("rms_norm_eps", 1e-6)),
        activation=read_activation(settings.get("hidden_act") or "silu"),
        qkv_bias=bool(settings.get("attention_bias", False)),
        output_bias=bool(settings.get("attention_bias", False)),
        mlp_bias=bool(settings.get("mlp_bias", False)),
        tied=bool(settings.get("tie_word_embeddings", False)),
    )
    return replace(config, **changes)


def read_activation(name: object) -> Activation:
    if str(name) not in ACTIVATIONS:
        raise UnsupportedError(
            f"the activation '{name}' is not known", hint=f"known: {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[str(name)]


def _windows(settings: Settings, rope: Rope) -> tuple[LayerKind, ...]:
    """Return the layers: where `layer_types` names sliding windows, those have one."""
    depth, window = int(settings["num_hidden_layers"]), settings.get("sliding_window")
    if window is None or settings.get("use_sliding_window") is False:
        return (LayerKind(rope),) * depth
    types = settings.get("layer_types")
    if types is None:
        # Qwen's first layers may be without a window; Mistral's all have one.
        first = int(settings.get("max_window_layers") or 0)
        types = ["full_attention"] * first + ["sliding_attention"] * (depth - first)
    return tuple(
        LayerKind(rope, int(window) if kind == "sliding_attention" else None)
        for kind in cast("list[str]", types)[:depth]
    )


def read_rope(settings: Settings, head_width: int, base: float = 10_000.0) -> Rope:
    """Return the rotary embedding; newer configurations have all of it in `rope_parameters`."""
    given: Any = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    if not isinstance(given, Mapping):
        raise UnsupportedError("the configuration's rope_scaling is not a table of settings")
    scaling = cast("Mapping[str, Any]", given)
    base = float(scaling.get("rope_theta") or settings.get("rope_theta") or base)
    share = scaling.get("partial_rotary_factor") or settings.get("partial_rotary_factor") or 1.0
    width = int(head_width * float(share))
    kind = str(scaling.get("rope_type") or scaling.get("type") or "default")
    rope = Rope(base, width)
    if kind in ("default", "mrope"):
        return rope
    if kind == "linear":
        return replace(rope, divisors=(float(scaling["factor"]),) * (width // 2))
    if kind == "llama3":
        return replace(rope, divisors=_llama3_divisors(rope, scaling))
    raise UnsupportedError(
        f"rotary embeddings are scaled by '{kind}', which is not known",
        hint="known: linear, llama3; set rope_scaling to null in config.json to use the model as "
        "far as it was trained without scaling",
    )


def _llama3_divisors(rope: Rope, scaling: Mapping[str, Any]) -> tuple[float, ...]:
    """Return divisors of frequencies: 1 for fast ones, the factor for slow ones, between smooth."""
    factor = float(scaling["factor"])
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    trained = float(scaling["original_max_position_embeddings"])
    divisors: list[float] = []
    for channel in range(0, rope.width, 2):
        turns = trained / (2 * math.pi * rope.base ** (channel / rope.width))
        smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
        divisors.append(1 / ((1 - smooth) / factor + smooth))
    return tuple(divisors)


def _read_llama(settings: Settings) -> DecoderConfig:
    return _read_common({**settings, "sliding_window": None})


def _read_mistral(settings: Settings) -> DecoderConfig:
    return _read_common(
        {"sliding_window": 4096, **settings}, qkv_bias=False, output_bias=False, mlp_bias=False
    )


def _qwen_windows(settings: Settings) -> Settings:
    """Return the configuration with Qwen's defaults for windows, which few of its models use."""
    defaults = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
    return {**defaults, **settings}


def _read_qwen2(settings: Settings) -> DecoderConfig:
    return _read_common(_qwen_windows(settings), qkv_bias=True, output_bias=False)


def _read_qwen3(settings: Settings) -> DecoderConfig:
    given = {"head_dim": 128, **_qwen_windows(settings)}
    return _read_common(given, query_key_norm=True)


def _read_phi3(settings: Settings) -> DecoderConfig:
    return _read_common(
        {"rms_norm_eps": 1e-5, **settings}, qkv_bias=False, output_bias=False, mlp_bias=False
    )


def _read_gemma(settings: Settings, **changes: Any) -> DecoderConfig:
    head_width = int(settings.get("head_dim") or 256)
    defaults = {"tie_word_embeddings": True, "head_dim": head_width}
    scale = float(settings.get("query_pre_attn_scalar") or 256) ** -0.5
    activation = settings.get("hidden_activation") or "gelu_pytorch_tanh"
    return _read_common(
        {**defaults, **settings, "hidden_act": activation},
        **{
            "embedding_scale": float(settings["hidden_size"]) ** 0.5,
            "attention_scale": scale,
            "output_norms": True,
            **changes,
        },
    )


def _read_gemma1(settings: Settings) -> DecoderConfig:
    plain = {**settings, "sliding_window": None}
    return _read_gemma(plain, output_norms=False, attention_scale=None)


def _read_gemma2(settings: Settings) -> DecoderConfig:
    depth = int(settings["num_hidden_layers"])
    every_second = ["full_attention" if n % 2 else "sliding_attention" for n in range(depth)]
    defaults = {"sliding_window": 4096, "layer_types": every_second}
    return _read_gemma(
        {**defaults, **settings},
        attention_cap=settings.get("attn_logit_softcapping", 50.0),
        logit_cap=settings.get("final_logit_softcapping", 30.0),
    )


def _read_gemma3(settings: Settings) -> DecoderConfig:
    depth, pattern = int(settings["num_hidden_layers"]), settings.get("sliding_window_pattern", 6)
    types = settings.get("layer_types") or [
        "sliding_attention" if (n + 1) % int(pattern) else "full_attention" for n in range(depth)
    ]
    head_width = int(settings.get("head_dim") or 256)
    window = int(settings.get("sliding_window") or 4096)
    by_type = cast("Mapping[str, Any]", settings.get("rope_parameters") or {})
    if "full_attention" in by_type:
        full = read_rope({"rope_parameters": by_type["full_attention"]}, head_width, 1e6)
        local = read_rope({"rope_parameters": by_type["sliding_attention"]}, head_width)
    else:
        full = read_rope(settings, head_width, 1e6)
        local = Rope(float(settings.get("rope_local_base_freq") or 10_000.0), head_width)
    sliding, whole = LayerKind(local, window), LayerKind(full)
    return _read_gemma(
        {**settings, "rope_parameters": None, "rope_scaling": None, "sliding_window": None},
        query_key_norm=True,
        layers=tuple(sliding if kind == "sliding_attention" else whole for kind in types),
        logit_cap=settings.get("final_logit_softcapping"),
        attention_cap=settings.get("attn_logit_softcapping"),
    )


def _read_stablelm(settings: Settings) -> DecoderConfig:
    for choice in ("use_parallel_residual", "qk_layernorm"):
        if settings.get(choice):
            raise UnsupportedError(f"StableLM with '{choice}' is not read")
    bias = bool(settings.get("use_qkv_bias", False))
    return _read_common(
        {"partial_rotary_factor": 0.25, **settings, "attention_bias": False},
        norm="layer",
        eps=float(settings.get("layer_norm_eps", 1e-5)),
        qkv_bias=bias,
    )


def _read_bitnet(settings: Settings) -> DecoderConfig:
    defaults = {"rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "hidden_act": "relu2"}
    return _read_common({**defaults, **settings, "sliding_window": None}, sub_norms=True)


GPT2_SIZES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
"""What GPT-2 calls the sizes."""


def _read_gpt2(settings: Settings) -> DecoderConfig:
    for choice in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if settings.get(choice):
            raise UnsupportedError(f"GPT-2 with '{choice}' is not read")
    width = int(settings["hidden_size"])
    given = {
        "max_position_embeddings": 1024,
        **settings,
        "intermediate_size": settings.get("intermediate_size") or 4 * width,
        "hidden_act": settings.get("activation_function") or "gelu_new",
    }
    return _read_common(
        given,
        norm="layer",
        eps=float(settings.get("layer_norm_epsilon", 1e-5)),
        layers=(LayerKind(None),) * int(settings["num_hidden_layers"]),
        gated=False,
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        tied=bool(settings.get("tie_word_embeddings", True)),
    )


FAMILIES: dict[str, Callable[[Settings], DecoderConfig]] = {
    "llama": _read_llama,
    "mistral": _read_mistral,
    "qwen2": _read_qwen2,
    "qwen3": _read_qwen3,
    "phi3": _read_phi3,
    "gemma": _read_gemma1,
    "gemma2": _read_gemma2,
    "gemma3_text": _read_gemma3,
    "stablelm": _read_stablelm,
    "bitnet": _read_bitnet,
    "gpt2": _read_gpt2,
}
"""By the name that transformers gives the family, `model_type`."""
