"""What a decoder is built from: sizes and choices, whatever file they were read in.

One record covers all families that are read. It has no defaults that depend on a family; those are
where a family's own names are read, in `architectures.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]
Norm = Literal["rms", "layer"]


@dataclass(frozen=True)
class Rope:
    """Rotary position embedding: channels of a head are rotated by an angle for each position."""

    base: float
    width: int
    """How many channels of a head are rotated, the first ones."""
    divisors: tuple[float, ...] = ()
    """What each frequency is divided by; none where they are as the base says."""


@dataclass(frozen=True)
class LayerKind:
    """What differs between the layers of a model: how far attention reaches, and its angles."""

    rope: Rope | None
    """None where positions are embedded beside the tokens."""
    window: int | None = None
    """How many tokens attention reaches back, the current one counted; None for all."""


@dataclass(frozen=True)
class DecoderConfig:
    vocabulary: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    longest: int
    """How many tokens the model was trained for."""
    layers: tuple[LayerKind, ...]
    eps: float
    norm: Norm = "rms"
    activation: Activation = "silu"
    gated: bool = True
    """Whether the hidden layer is multiplied by a gate."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    query_key_norm: bool = False
    """Whether queries and keys are normalized, head by head."""
    output_norms: bool = False
    """Whether the outputs of attention and MLP are normalized, too."""
    sub_norms: bool = False
    """Whether what the last matrix of attention and MLP is given is normalized, too."""
    embedding_scale: float | None = None
    attention_scale: float | None = None
    """What scores are multiplied by; None is one over the root of the head's width."""
    attention_cap: float | None = None
    """Scores stay below it by a tanh."""
    logit_cap: float | None = None
    tied: bool = False
    """Whether the head is the embedding."""

    @property
    def has_positions(self) -> bool:
        """Whether the embeddings of positions are weights."""
        return any(kind.rope is None for kind in self.layers)
