"""What of a decoder the formats can say, and the order in which they have queries and keys.

Their programs rotate neighbouring channels of a head, the decoder here those of its two halves:
rows of queries and keys change places, and nothing else does.
"""

from __future__ import annotations

from fewbit.errors import Place, UnsupportedError
from fewbit.language.checkpoint import Checkpoint
from fewbit.language.config import DecoderConfig, Rope
from fewbit.language.pieces import Array

HINT = "LLaMa, Mistral without windows, Qwen2 and Qwen3 can be exported"


def check_family(checkpoint: Checkpoint) -> Rope:
    """Refuse a decoder that is not of the LLaMa family; return how its heads are rotated."""
    config = checkpoint.config
    for is_so, what in _differences(config):
        if is_so:
            raise refuse(checkpoint, what)
    rope = config.layers[0].rope
    if rope is None or rope.width != config.head_width:
        raise refuse(checkpoint, "rotates a part of each head, or none of it")
    return rope


def refuse(checkpoint: Checkpoint, what: str, hint: str = HINT) -> UnsupportedError:
    return UnsupportedError(
        f"the model {what}, which the format has no words for",
        place=Place(file=str(checkpoint.path)),
        hint=hint,
    )


def _differences(config: DecoderConfig) -> tuple[tuple[bool, str], ...]:
    scaled = (config.embedding_scale, config.attention_scale)
    return (
        (config.norm != "rms", "has layer norms"),
        (config.activation != "silu" or not config.gated, "has another MLP"),
        (config.mlp_bias, "has biases in its MLP"),
        (config.output_norms or config.sub_norms, "has more norms"),
        (any(scale is not None for scale in scaled), "scales embeddings or scores by its own rule"),
        (config.attention_cap is not None or config.logit_cap is not None, "caps scores or logits"),
        (any(kind.window is not None for kind in config.layers), "attends to a window"),
        (len(set(config.layers)) > 1, "has layers of several kinds"),
    )


def interleave_halves(array: Array, heads: int) -> Array:
    """Return rows of queries or keys, or their biases, with the two halves of each head in turn."""
    halves = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
    return halves.swapaxes(1, 2).reshape(array.shape)
