"""Tiny checkpoints with random weights: Hugging Face folders, and GGUF files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import gguf
import numpy as np
from gguf import quants

from fewbit.language.architectures import read_config
from fewbit.language.decoder import LanguageModel
from fewbit.language.pieces import find_piece
from fewbit.program.program import Program
from fewbit.program.tensor_file import write

VOCABULARY = 300
COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
GEMMA = {"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24}
SETTINGS: dict[str, dict[str, Any]] = {
    "llama": {"rope_scaling": LLAMA3, "tie_word_embeddings": True},
    "mistral": {"sliding_window": 4, "head_dim": 24, "rope_theta": 1e6},
    "qwen2": {"tie_word_embeddings": True, "rope_theta": 1e6},
    "qwen3": {"head_dim": 24, "tie_word_embeddings": False},
    "phi3": {"sliding_window": 5, "pad_token_id": 0},
    "gemma": {"head_dim": 16, "num_key_value_heads": 1},
    "gemma2": {**GEMMA, "sliding_window": 4},
    "gemma3_text": {
        **GEMMA,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "stablelm": {"use_qkv_bias": True, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25},
    "bitnet": {"tie_word_embeddings": True, "hidden_act": "relu2", "rope_theta": 500_000.0},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY},
}
"""A configuration of each family that uses what sets it apart."""


def settings_of(family: str) -> dict[str, Any]:
    common = {} if family == "gpt2" else COMMON
    return {"model_type": family, **common, **SETTINGS[family]}


def draw(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray[Any, Any]:
    values = generator.standard_normal(shape).astype(np.float32)
    return values / np.float32(8) + (1 if len(shape) == 1 else 0)


def decoder_shapes(settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the decoder's weights by their names, without a tied head."""
    import torch

    config = read_config(settings)
    with torch.device("meta"):
        model = LanguageModel(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if config.tied:
        del shapes["lm_head.weight"]
    return shapes


def write_folder(
    folder: Path, settings: dict[str, Any], tensors: dict[str, np.ndarray[Any, Any]]
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    write(folder / "model.safetensors", tensors, {"format": "pt"})
    return folder


def plain_folder(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Write a LLaMa, whose names are the decoder's own."""
    settings = {**settings_of("llama"), **changes}
    generator = np.random.default_rng(seed)
    shapes = decoder_shapes(settings)
    return write_folder(folder, settings, {n: draw(s, generator) for n, s in shapes.items()})


def byte_tokens() -> tuple[list[str], list[str], list[int]]:
    """Return tokens, merges and kinds of a byte-level BPE: all bytes, some words, control tokens."""
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = sorted(ByteLevel.alphabet())
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]
    tokens += [merge.replace(" ", "") for merge in merges]
    control = ["<|im_start|>", "<|im_end|>", "<|unknown|>"]
    kinds = [1] * len(tokens) + [3] * len(control)
    return tokens + control, merges, kinds


TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_gguf(
    path: Path,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    *,
    architecture: str = "llama",
    depth: int = 1,
    tied: bool = False,
    experts: int = 0,
    leave_out: str | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray[Any, Any]]:
    """Write a LLaMa as llama.cpp's converter would, and return its weights, dequantized."""
    settings = {**settings_of("llama"), "num_hidden_layers": depth, "rope_scaling": None}
    settings["tie_word_embeddings"] = tied
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(depth)
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_rope_freq_base(10_000.0)
    if experts:
        writer.add_uint32(f"{architecture}.expert_count", experts)
    write_tokenizer(writer)
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray[Any, Any]] = {}
    for name, shape in decoder_shapes(settings).items():
        array = draw(shape, generator)
        stored = permute(array, name)
        few = kind if array.ndim == 2 else gguf.GGMLQuantizationType.F32
        blocks = quants.quantize(stored, few)
        weights[name] = unpermute(quants.dequantize(blocks, few).reshape(shape), name)
        if name != leave_out:
            writer.add_tensor(gguf_name(name), blocks, raw_dtype=few)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def write_tokenizer(writer: gguf.GGUFWriter, pre: str = "smollm") -> None:
    tokens, merges, kinds = byte_tokens()
    writer.add_tokenizer_model("gpt2")
    writer.add_string("tokenizer.ggml.pre", pre)
    writer.add_array("tokenizer.ggml.tokens", tokens)
    writer.add_array("tokenizer.ggml.token_type", kinds)
    writer.add_array("tokenizer.ggml.merges", merges)
    writer.add_uint32("tokenizer.ggml.bos_token_id", tokens.index("<|im_start|>"))
    writer.add_uint32("tokenizer.ggml.eos_token_id", tokens.index("<|im_end|>"))
    writer.add_string("tokenizer.chat_template", TEMPLATE)


def heads_of(name: str) -> int:
    return {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2], 0)


def permute(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Interleave the two halves of each head of queries and keys, as the converter does."""
    heads = heads_of(name)
    if not heads:
        return array
    halves = array.reshape(heads, 2, len(array) // heads // 2, -1)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)


def unpermute(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    heads = heads_of(name)
    if not heads:
        return array
    pairs = array.reshape(heads, len(array) // heads // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(array.shape)


NAMES = {
    "input_layernorm": "attn_norm",
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
}


def gguf_name(name: str) -> str:
    parts = name.split(".")
    place = f"blk.{parts[2]}." if parts[1] == "layers" else ""
    return f"{place}{NAMES[parts[-2]]}.weight"


def family_folder(
    folder: Path, family: str, seed: int = 0, **changes: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """Write a checkpoint as a family's own class would save it, and return its tensors."""
    settings, generator = {**settings_of(family), **changes}, np.random.default_rng(seed)
    shapes = decoder_shapes(settings)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    config = read_config(settings)
    for name, shape in shapes.items():
        piece, total = find_piece(family, config, name)
        prefix = "transformer." if family == "gpt2" else ""
        if f"{prefix}{piece.key}" not in tensors:
            tensors[f"{prefix}{piece.key}"] = draw(piece.shape_in_file(shape, total), generator)
    write_folder(folder, settings, tensors)
    return tensors


def empty_caches(program: Program) -> list[np.ndarray[Any, Any]]:
    """Return the state with which a program begins: inputs that a run updates, all zeros."""
    updated = {spec.updates for spec in program.signature.outputs}
    state = [spec for spec in program.signature.inputs if spec.name in updated]
    return [np.zeros(cast(Any, spec.shape), spec.dtype) for spec in state]
