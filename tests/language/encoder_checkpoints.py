"""Tiny encoders with random weights, as Hugging Face folders of their families' own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fewbit.language.encoder_families import ENCODERS, read_encoder_config
from fewbit.language.encoder_folder import build_traced_encoder
from fewbit.program.tensor_file import write
from tests.language.checkpoints import draw

VOCABULARY = 120
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "hello", "world", "few", "bits", "##s", ",", "."]
BERT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
T5: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 96,
    "d_kv": 24,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": VOCABULARY,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", BERT),
    "bert-gelu_new": ("bert", {**BERT, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}),
    "roberta": ("roberta", {**BERT, "type_vocab_size": 1, "pad_token_id": 1}),
    "xlm-roberta": ("xlm-roberta", {**BERT, "type_vocab_size": 1, "pad_token_id": 3}),
    "distilbert": (
        "distilbert",
        {
            "dim": 64,
            "hidden_dim": 96,
            "n_layers": 2,
            "n_heads": 4,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": 40,
        },
    ),
    "mpnet": ("mpnet", BERT),
    "t5": ("t5", {**T5, "feed_forward_proj": "relu"}),
    "t5-gated": ("t5", {**T5, "feed_forward_proj": "gated-gelu"}),
}
"""A configuration of each family, and of its choices."""


def encoder_settings(case: str, **changes: Any) -> dict[str, Any]:
    family, settings = SETTINGS[case]
    return {"model_type": family, **settings, **changes}


def write_encoder(folder: Path, case: str, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Write a checkpoint under the family's own names, and return its tensors."""
    settings, generator = encoder_settings(case, **changes), np.random.default_rng(seed)
    config, family = read_encoder_config(settings), ENCODERS[settings["model_type"]]
    one = build_traced_encoder(config, 8).state_dict()
    tensors: dict[str, Any] = {}
    for number in range(config.depth):
        for name, tensor in one.items():
            own = name.replace("model.layers.0.", f"model.layers.{number}.")
            piece, total = family.find(config, own)
            if piece.key not in tensors:
                shape = piece.shape_in_file(tuple(tensor.shape), total)
                tensors[piece.key] = draw(shape, generator)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    write(folder / "model.safetensors", tensors, {"format": "pt"})
    return tensors


def write_sentence_encoder(
    folder: Path, case: str = "bert", pooling: str = "mean_tokens", **changes: Any
) -> Path:
    """Write an encoder as sentence-transformers does, with a tokenizer that pads."""
    write_encoder(folder, case, **changes)
    write_words(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens")}
    modes |= {f"pooling_mode_{pooling}": True, "word_embedding_dimension": 64}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    return folder


def write_words(folder: Path, padded: int = 16) -> None:
    """Write a tokenizer of whole words, between [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer: Any = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=padded)
    tokenizer.enable_truncation(padded)
    tokenizer.save(str(folder / "tokenizer.json"))
