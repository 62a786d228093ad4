"""The same weights as a GGUF file and as a Hugging Face folder, of each family.

Names of tensors come from the package `gguf`, and values are changed as llama.cpp's converter does.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language.gguf_file import FAMILIES
from tests.language.checkpoints import family_folder, permute, settings_of, write_tokenizer

NUMBERS = {
    "hidden_size": "embedding_length",
    "n_embd": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "n_layer": "block_count",
    "num_attention_heads": "attention.head_count",
    "n_head": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "n_positions": "context_length",
    "head_dim": "attention.key_length",
    "sliding_window": "attention.sliding_window",
}
FLOATS = {
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "rope_theta": "rope.freq_base",
}


def convert(name: str, array: np.ndarray[Any, Any], architecture: str) -> np.ndarray[Any, Any]:
    """Return a tensor as llama.cpp's converter stores it."""
    if architecture == "llama":
        return permute(array, name)
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return array + np.float32(1)
    if architecture == "gpt2" and name.endswith(
        (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
    ):
        return np.ascontiguousarray(array.T)
    return array


def write_as_gguf(
    path: Path, architecture: str, settings: dict[str, Any], tensors: dict[str, Any]
) -> None:
    writer = gguf.GGUFWriter(path, architecture)
    for table, add in ((NUMBERS, writer.add_uint32), (FLOATS, writer.add_float32)):
        for theirs, ours in table.items():
            if theirs in settings:
                add(f"{architecture}.{ours}", settings[theirs])
    if "partial_rotary_factor" in settings:
        writer.add_uint32(f"{architecture}.rope.dimension_count", 4)
    write_tokenizer(writer)
    kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(kinds[architecture], 2)
    for name, array in tensors.items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        writer.add_tensor(theirs, convert(name, array, architecture))
    if "rope_scaling" in settings:
        checkpoint = open_checkpoint(path.parent / "folder")
        divisors = checkpoint.config.layers[0].rope
        assert divisors is not None
        writer.add_tensor("rope_freqs.weight", np.array(divisors.divisors, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_file_and_a_folder_are_one_model(architecture: str, tmp_path: Path) -> None:
    family = FAMILIES[architecture]
    tensors = family_folder(tmp_path / "folder", family)
    settings = settings_of(family)
    # These are what a file does not say.
    settings.pop("layer_types", None)
    settings.pop("query_pre_attn_scalar", None)
    (tmp_path / "folder" / "config.json").write_text(
        json.dumps({**settings, "query_pre_attn_scalar": 16})
    )
    write_as_gguf(tmp_path / "net.gguf", architecture, settings, tensors)
    folder, file = open_checkpoint(tmp_path / "folder"), open_checkpoint(tmp_path / "net.gguf")
    assert replace(file.config, layers=(), eps=0) == replace(folder.config, layers=(), eps=0)
    assert file.config.eps == pytest.approx(folder.config.eps)
    for ours, theirs in zip(file.config.layers, folder.config.layers, strict=True):
        assert ours.window == theirs.window
        assert (ours.rope is None) == (theirs.rope is None)
        if ours.rope is not None and theirs.rope is not None:
            assert (ours.rope.base, ours.rope.width) == (theirs.rope.base, theirs.rope.width)
            np.testing.assert_allclose(ours.rope.divisors, theirs.rope.divisors, rtol=1e-6)
    expected = build_decoder(folder, 16).state_dict()
    for name, tensor in build_decoder(file, 16).state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), expected[name].numpy(), atol=2e-7, err_msg=name)
