"""Hugging Face folders: what is read of them, and what is refused before any weight is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.frontends.language import build_decoder, import_language_model, open_checkpoint
from fewbit.language.gguf_tokenizer import read_text
from fewbit.language.huggingface import is_checkpoint
from fewbit.language.text_files import TextFiles
from fewbit.program.tensor_file import TensorFile, write
from tests.language.checkpoints import byte_tokens, plain_folder


def edit_config(folder: Path, **changes: Any) -> None:
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **changes}))


def tensors_of(folder: Path) -> dict[str, Any]:
    file = TensorFile.open(folder / "model.safetensors")
    return {key: np.array(file.array(key)) for key in file.spans}


def weights_of(folder: Path) -> dict[str, Any]:
    model = build_decoder(open_checkpoint(folder), 16)
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def test_weights_are_mapped(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    model = build_decoder(open_checkpoint(tmp_path), 16)
    file = TensorFile.open(tmp_path / "model.safetensors")
    for key in file.spans:
        np.testing.assert_array_equal(model.state_dict()[key].numpy(), file.array(key))
    checkpoint = open_checkpoint(tmp_path)
    assert not checkpoint.read("model.norm.weight").flags.owndata


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_widened(dtype: Any, tmp_path: Path) -> None:
    plain_folder(tmp_path)
    narrow = {key: array.astype(dtype) for key, array in tensors_of(tmp_path).items()}
    write(tmp_path / "model.safetensors", narrow, {})
    for key, array in weights_of(tmp_path).items():
        if key in narrow:
            np.testing.assert_array_equal(array, narrow[key].astype(np.float32))


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    whole = plain_folder(tmp_path / "whole")
    shards = plain_folder(tmp_path / "shards")
    tensors = tensors_of(shards)
    (shards / "model.safetensors").unlink()
    keys = sorted(tensors)
    table: dict[str, str] = {}
    for number, part in enumerate((keys[:5], keys[5:])):
        name = f"model-0000{number}-of-00002.safetensors"
        write(shards / name, {key: tensors[key] for key in part}, {})
        table |= dict.fromkeys(part, name)
    (shards / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    for key, array in weights_of(whole).items():
        np.testing.assert_array_equal(weights_of(shards)[key], array)
    (shards / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(UsageError, match=r"names 'model-00001-of-00002.safetensors'"):
        open_checkpoint(shards)


def test_an_unknown_architecture_names_the_nearest(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()  # nothing of it is read
    edit_config(tmp_path, model_type="qwen2_moe")
    with pytest.raises(UnsupportedError, match="'qwen2_moe'") as caught:
        open_checkpoint(tmp_path)
    assert "nearest known is qwen2" in (caught.value.hint or "")
    assert "transformers:AutoModel.from_pretrained(" in (caught.value.hint or "")


def test_missing_tensors_are_named(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    tensors = tensors_of(tmp_path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    write(tmp_path / "model.safetensors", tensors, {})
    with pytest.raises(Error, match=r"lacks 'model.layers.1.mlp.up_proj.weight'"):
        build_decoder(open_checkpoint(tmp_path), 16)


def test_misshapen_tensors_are_named(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    edit_config(tmp_path, intermediate_size=80)
    with pytest.raises(Error, match=r"'model.layers.0.mlp.gate_proj.weight' is 96x64.*80x64"):
        build_decoder(open_checkpoint(tmp_path), 16)


def test_weights_that_the_decoder_lacks_are_refused(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    tensors = tensors_of(tmp_path)
    tensors["model.layers.0.self_attn.q_proj.bias"] = np.ones(64, np.float32)
    write(tmp_path / "model.safetensors", tensors, {})
    with pytest.raises(UnsupportedError, match=r"'model.layers.0.self_attn.q_proj.bias', which"):
        build_decoder(open_checkpoint(tmp_path), 16)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="no weights in safetensors"):
        open_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="no weights") as caught:
        open_checkpoint(tmp_path)
    assert "pickled" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized already, by gptq"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "is no decoder"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "scaled by 'yarn'"),
        ({"hidden_act": "relu6"}, "activation 'relu6'"),
        ({"hidden_size": None}, "no size 'hidden_size'"),
        ({"num_key_value_heads": 3}, "4 query heads do not share 3"),
    ],
)
def test_choices_that_are_not_known_are_refused(
    changes: dict[str, Any], what: str, tmp_path: Path
) -> None:
    plain_folder(tmp_path)
    edit_config(tmp_path, **changes)
    with pytest.raises(UnsupportedError, match=what):
        open_checkpoint(tmp_path)


def test_other_folders_are_no_checkpoints(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    assert not is_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert not is_checkpoint(tmp_path)


def write_tokenizer(folder: Path) -> None:
    tokens, merges, kinds = byte_tokens()
    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
    }
    text = read_text(values.get, folder)
    assert text is not None
    (folder / "tokenizer.json").write_text(text.tokenizer)


def text_of(folder: Path) -> TextFiles:
    text = open_checkpoint(folder).text
    assert text is not None
    return text


def test_text_is_taken_from_the_folder(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    assert open_checkpoint(tmp_path).text is None
    write_tokenizer(tmp_path)
    end = byte_tokens()[0].index("<|im_end|>")
    described = {
        "eos_token": {"content": "<|im_end|>"},
        "bos_token": "<|im_start|>",
        "pad_token": None,
        "chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "y"}],
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(described))
    text = text_of(tmp_path)
    assert text.special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert text.end_tokens == (end,)
    assert text.template == "y"
    edit_config(tmp_path, eos_token_id=3)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 3]}))
    (tmp_path / "chat_template.jinja").write_text("z")
    assert text_of(tmp_path).end_tokens == (5, 3)
    assert text_of(tmp_path).template == "z"


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    plain_folder(tmp_path, vocab_size=100)
    write_tokenizer(tmp_path)
    with pytest.raises(Error, match=r"has the token \d+, and the model's vocabulary is 100"):
        import_language_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(Error, match="this is no tokenizer"):
        open_checkpoint(tmp_path)
