"""Folders of encoders: what is read of them, and what is refused before any weight is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error, FewbitWarning, UnsupportedError, UsageError
from fewbit.frontends.language import build_encoder, open_checkpoint, open_encoder
from fewbit.language.checkpoint import open_weights
from fewbit.language.encoder_families import read_encoder_config
from fewbit.language.sentence_modules import read_sentence_modules
from fewbit.language.tokenizer import open_tokenizer
from fewbit.program.tensor_file import write
from tests.language.encoder_checkpoints import (
    VOCABULARY,
    encoder_settings,
    write_encoder,
    write_sentence_encoder,
    write_words,
)
from tests.language.test_huggingface import edit_config


def weights_of(folder: Path) -> dict[str, Any]:
    model = build_encoder(open_encoder(folder), 16)
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def rewrite(folder: Path, tensors: dict[str, Any]) -> None:
    write(folder / "model.safetensors", tensors, {})


def test_names_of_models_with_a_head(tmp_path: Path) -> None:
    """A model of masked words has a prefix and a head, and the first ones other names of norms."""
    tensors = write_encoder(tmp_path, "bert")
    expected = weights_of(tmp_path)
    older = {
        f"bert.{key}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): array
        for key, array in tensors.items()
    }
    head = {"cls.predictions.bias": np.ones(VOCABULARY, np.float32)}
    rewrite(tmp_path, older | head | {"bert.pooler.dense.bias": np.ones(64, np.float32)})
    edit_config(tmp_path, architectures=["BertForMaskedLM"])
    for name, array in weights_of(tmp_path).items():
        np.testing.assert_array_equal(array, expected[name])


def test_positions_and_token_types_are_parts_of_tables(tmp_path: Path) -> None:
    tensors = write_encoder(tmp_path, "roberta")
    weights = weights_of(tmp_path)
    positions = tensors["embeddings.position_embeddings.weight"]
    np.testing.assert_array_equal(weights["model.embed_positions.weight"], positions[2:])
    types = tensors["embeddings.token_type_embeddings.weight"]
    np.testing.assert_array_equal(weights["model.token_type"], types[:1])


def test_the_decoder_of_t5_is_left_out(tmp_path: Path) -> None:
    tensors = write_encoder(tmp_path, "t5")
    expected = weights_of(tmp_path)
    table = tensors.pop("shared.weight")
    rewrite(tmp_path, tensors | {"encoder.embed_tokens.weight": table})
    np.testing.assert_array_equal(weights_of(tmp_path)["model.embed_tokens.weight"], table)
    others = {"decoder.final_layer_norm.weight": np.ones(64, np.float32), "lm_head.weight": table}
    rewrite(tmp_path, tensors | {"shared.weight": table} | others)
    edit_config(tmp_path, architectures=["T5ForConditionalGeneration"])
    write_words(tmp_path)
    assert weights_of(tmp_path).keys() == expected.keys()
    with pytest.warns(FewbitWarning, match="the encoder alone is read"):
        fewbit.import_model(tmp_path)


def test_missing_misshapen_and_other_tensors_are_named(tmp_path: Path) -> None:
    tensors = write_encoder(tmp_path, "bert")
    name = "encoder.layer.1.attention.self.key.weight"
    rewrite(tmp_path, {key: array for key, array in tensors.items() if key != name})
    with pytest.raises(Error, match=f"lacks '{name}'"):
        open_weights(open_encoder(tmp_path))
    rewrite(tmp_path, tensors | {name: np.ones((64, 32), np.float32)})
    with pytest.raises(Error, match=f"'{name}' is 64x32, and the configuration says 64x64"):
        open_weights(open_encoder(tmp_path))
    rewrite(tmp_path, tensors | {"encoder.layer.0.adapter.weight": np.ones(4, np.float32)})
    with pytest.raises(UnsupportedError, match=r"has 'encoder.layer.0.adapter.weight', which"):
        open_weights(open_encoder(tmp_path))


def test_too_few_positions_are_named(tmp_path: Path) -> None:
    write_encoder(tmp_path, "roberta")
    edit_config(tmp_path, max_position_embeddings=64)
    with pytest.raises(Error, match=r"position_embeddings.weight' is 40x64.* says 64x64"):
        open_weights(open_encoder(tmp_path))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"architectures": ["BertForSequenceClassification"]}, "an encoder with a head"),
        ({"architectures": ["BertLMHeadModel"]}, "an encoder with a head"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized already, by awq"),
        ({"position_embedding_type": "relative_key"}, "embedded as 'relative_key'"),
        ({"hidden_act": "mish"}, "activation 'mish'"),
        ({"num_attention_heads": 5}, "5 heads do not divide a width of 64"),
        ({"intermediate_size": None}, "no size 'intermediate_size'"),
        ({"is_decoder": True}, "'is_decoder'"),
    ],
)
def test_choices_that_are_not_known_are_refused(
    changes: dict[str, Any], what: str, tmp_path: Path
) -> None:
    write_encoder(tmp_path, "bert")
    (tmp_path / "model.safetensors").unlink()  # nothing of it is read
    edit_config(tmp_path, **changes)
    with pytest.raises(UnsupportedError, match=what):
        open_encoder(tmp_path)


def test_unknown_encoders_name_the_nearest(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert")
    edit_config(tmp_path, model_type="modernbert")
    with pytest.raises(UnsupportedError, match="'modernbert'") as caught:
        fewbit.import_model(tmp_path)
    assert "nearest known is" in (caught.value.hint or "")
    assert "xlm-roberta" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="no folder of an encoder"):
        open_encoder(tmp_path)
    with pytest.raises(UnsupportedError):
        open_checkpoint(tmp_path)


def test_encoders_are_no_models_that_decode(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert")
    with pytest.raises(UsageError, match="the folder of an encoder"):
        open_checkpoint(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", vocab_size=8)
    write_words(tmp_path)
    with pytest.raises(Error, match="has the token 11, and the model's vocabulary is 8"):
        fewbit.import_model(tmp_path)


def test_positions_begin_behind_the_padding() -> None:
    config = read_encoder_config(encoder_settings("roberta", pad_token_id=None))
    assert (config.first_position, config.longest) == (2, 38)
    with pytest.raises(UnsupportedError, match="40 positions leave none"):
        read_encoder_config(encoder_settings("roberta", pad_token_id=50))


def test_gates_are_read_from_the_words_of_t5() -> None:
    gated = read_encoder_config(encoder_settings("t5", feed_forward_proj="gated-silu"))
    assert (gated.gated, gated.activation) == (True, "silu")
    gated = read_encoder_config(encoder_settings("t5-gated"))
    assert (gated.gated, gated.activation) == (True, "gelu_tanh")


def test_modules_of_sentences(tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path, pooling="cls_token")
    modules = read_sentence_modules(tmp_path)
    assert (modules.pooling, modules.normalize, modules.longest) == ("cls", True, None)
    (tmp_path / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 24, "do_lower_case": True})
    )
    prompts = {"prompts": {"query": "few bits: "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    modules = read_sentence_modules(tmp_path)
    assert (modules.longest, modules.lower_case, modules.prompt) == (24, True, "few bits: ")
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "mean"}))
    assert read_sentence_modules(tmp_path).pooling == "mean"


def test_small_letters_are_part_of_the_tokenizer(tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path)
    settings = tmp_path / "sentence_bert_config.json"
    tokens: list[list[int]] = []
    for lower in (False, True):
        settings.write_text(json.dumps({"max_seq_length": None, "do_lower_case": lower}))
        text = open_encoder(tmp_path).text
        assert text is not None
        tokens.append(open_tokenizer(text.tokenizer).encode("HELLO").ids)
    assert tokens == [[2, 1, 3], [2, 5, 3]]


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "module 'Dense'"),
        ("modules.json", [{"type": "x.Transformer"}, {"type": "x.Normalize"}], "not pooled"),
        ("modules.json", {}, "no list of modules"),
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "pooled by 'lasttoken'"),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, "pooled by 'weightedmean'"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            "pooled by 'cls_token, mean_tokens'",
        ),
    ],
)
def test_other_modules_of_sentences_are_refused(
    file: str, content: Any, what: str, tmp_path: Path
) -> None:
    write_sentence_encoder(tmp_path)
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(Error, match=what):
        open_encoder(tmp_path)
