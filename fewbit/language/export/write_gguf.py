"""A checkpoint as a GGUF file, which llama.cpp reads, and `fewbit compile` too.

Matrices have one of four types, with blocks of few bits as llama.cpp's own quantization makes them;
those whose rows are no whole blocks are float16, norms and biases float32. Weights are read,
converted and written one by one, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from fewbit.base.files import PathLike, replacing_file
from fewbit.base.progress import progress
from fewbit.errors import Error, Place
from fewbit.language.checkpoint import Checkpoint, open_weights
from fewbit.language.config import DecoderConfig, Rope
from fewbit.language.export.family import check_family, interleave_halves, refuse
from fewbit.language.export.gguf_layout import PlannedTensor, Setting, header, padding
from fewbit.language.export.gguf_tokens import token_settings
from fewbit.language.export.weight_type import F16, F32, WeightType
from fewbit.language.gguf_file import DIVISORS, LAYERS, OTHERS
from fewbit.language.pieces import Array
from fewbit.language.tokenizer import require
from fewbit.program.store import WeightStore

BLOCK = 32
"""Elements that share a scale, in both types of few bits."""
AT_ONCE = 1 << 22
"""About how many elements are converted at once."""
QUANTIZATION_VERSION = 2


def write_gguf(checkpoint: Checkpoint, path: PathLike, weight_type: WeightType) -> None:
    """Write a GGUF file, whole or not at all; refuse what is not of the LLaMa family."""
    require("gguf")
    rope = check_family(checkpoint)
    architecture = _architecture(checkpoint)
    weights = open_weights(checkpoint)
    if rope.divisors and not _is_linear(rope):
        if architecture != "llama":
            raise refuse(checkpoint, f"scales the angles of {architecture}")
        weights.add(DIVISORS, np.array(rope.divisors, np.float32))
    tensors = {
        name: PlannedTensor(_gguf_name(name), weights.shape(name), kind)
        for name in weights
        for kind in [_kind(weights.shape(name), weight_type)]
    }
    settings = {
        "general.architecture": architecture,
        "general.name": checkpoint.path.stem,
        "general.file_type": weight_type.file_type,
        "general.quantization_version": QUANTIZATION_VERSION,
        **{f"{architecture}.{name}": value for name, value in _sizes(checkpoint.config, rope)},
        **token_settings(checkpoint),
    }
    with replacing_file(path) as file, progress("Writing weights", total=len(tensors)) as step:
        file.write(header(settings, list(tensors.values())))
        for name, tensor in tensors.items():
            heads = _rotated_heads(checkpoint.config, name) if architecture == "llama" else None
            _write(file, tensor, weights, name, heads)
            step()


def _architecture(checkpoint: Checkpoint) -> str:
    """Return GGUF's name of the architecture, which says where biases and norms are."""
    config = checkpoint.config
    if config.query_key_norm:
        if config.qkv_bias or config.output_bias:
            raise refuse(checkpoint, "has biases, and norms of queries and keys")
        return "qwen3"
    if config.qkv_bias != config.output_bias:
        return "qwen2"
    return "llama"


def _is_linear(rope: Rope) -> bool:
    return len(set(rope.divisors)) == 1


def _sizes(config: DecoderConfig, rope: Rope) -> Iterator[tuple[str, Setting]]:
    yield "vocab_size", config.vocabulary
    yield "context_length", config.longest
    yield "embedding_length", config.width
    yield "block_count", len(config.layers)
    yield "feed_forward_length", config.hidden
    yield "attention.head_count", config.heads
    yield "attention.head_count_kv", config.kv_heads
    yield "attention.key_length", config.head_width
    yield "attention.value_length", config.head_width
    yield "attention.layer_norm_rms_epsilon", config.eps
    yield "rope.dimension_count", rope.width
    yield "rope.freq_base", rope.base
    if rope.divisors and _is_linear(rope):
        yield "rope.scaling.type", "linear"
        yield "rope.scaling.factor", rope.divisors[0]


def _gguf_name(name: str) -> str:
    """Return what GGUF calls a weight of the decoder."""
    owner, _, kind = name.rpartition(".")
    if not owner.startswith("model.layers."):
        return f"{OTHERS.get(owner, owner)}.{kind}"
    _, _, number, part = owner.split(".", 3)
    return f"blk.{number}.{LAYERS[part]}.{kind}"


def _kind(shape: tuple[int, ...], weight_type: WeightType) -> int:
    if len(shape) < 2:
        return F32
    has_blocks = weight_type in (WeightType.Q4_0, WeightType.Q8_0)
    return F16 if has_blocks and shape[-1] % BLOCK else weight_type.kind


def _rotated_heads(config: DecoderConfig, name: str) -> int | None:
    """Return how many heads a weight has whose rows change places; None for all others."""
    return {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.split(".")[-2])


def _write(
    file: BinaryIO, tensor: PlannedTensor, weights: WeightStore, name: str, heads: int | None
) -> None:
    from gguf import GGMLQuantizationType, quants

    array = weights[name]
    if heads is not None:
        array = interleave_halves(array, heads)
    for rows in _some_rows(array):
        _check_range(rows, tensor.kind, name)
        blocks = quants.quantize(rows, GGMLQuantizationType(tensor.kind))
        file.write(np.ascontiguousarray(blocks).tobytes())
    file.write(padding(tensor.nbytes))


def _some_rows(array: Array) -> Iterator[Array]:
    step = max(1, AT_ONCE // max(1, array[0].size))
    for begin, end in pairwise([*range(0, len(array), step), len(array)]):
        yield array[begin:end]


def _check_range(rows: Array, kind: int, name: str) -> None:
    most = np.finfo(np.float32 if kind == F32 else np.float16).max
    # Written so that NaN, which is not less than anything, is refused as well.
    if np.abs(rows).max() <= most:
        return
    raise Error(
        "the weight has numbers that the file's type cannot hold",
        place=Place(layer=name.removesuffix(".weight")),
        hint="write float32, --type f32; infinities and NaN are errors of the checkpoint",
    )
