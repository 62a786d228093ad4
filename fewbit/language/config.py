"""What decoders and encoders are built from: sizes and choices, whatever file they were read in.

One record covers all families of a kind. It has no defaults that depend on a family; those are
where a family's own names are read, in `architectures.py` and `encoder_families.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewbit.quant.cache_scheme import F32, CacheScheme

Logits = Literal["last", "all"]
"""Whether a call gives the logits behind its last token, or behind all of them."""
Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]
Norm = Literal["rms", "layer"]
Pooling = Literal["mean", "cls", "max"]


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
class Decoding:
    """How a decoder is compiled: what it keeps of tokens, and what a call takes and gives."""

    context: int
    """How many tokens are kept."""
    cache: CacheScheme = F32
    logits: Logits = "last"
    sequences: int = 1
    """How many texts are decoded together, each with a position of its own."""
    steps: bool = False
    """Whether a call takes one token of each text and attends to the whole context, under a mask.

    Then no size depends on a position: so it is for targets that fix all sizes."""


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


@dataclass(frozen=True)
class Buckets:
    """Relative positions, of which far ones share a bucket: scores have a bias for each bucket."""

    count: int
    distance: int
    """From here on all positions are in the last bucket."""


@dataclass(frozen=True)
class EncoderConfig:
    vocabulary: int
    width: int
    hidden: int
    heads: int
    head_width: int
    depth: int
    longest: int | None
    """How many tokens there are positions for; None where positions are relative."""
    eps: float
    norm: Norm = "layer"
    is_pre_norm: bool = False
    """Whether norms are before attention and MLP, and one behind all layers; else behind each."""
    activation: Activation = "gelu"
    gated: bool = False
    qkv_bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    first_position: int = 0
    """The row of the first token in the table of positions; those before are left out."""
    token_types: int = 0
    """How many rows the table of texts in a pair has; the first is added, there is no second."""
    buckets: Buckets | None = None
    attention_scale: float | None = None
    """What scores are multiplied by; None is one over the root of the head's width."""
    pooling: Pooling | None = None
    """How the states become one vector; None where the states are the result."""
    normalize: bool = False
    """Whether that vector has the length 1."""
