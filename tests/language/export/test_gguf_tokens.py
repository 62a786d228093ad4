"""Tokenizers in the words of GGUF, which give the same tokens when they are read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer

from fewbit.errors import Error, UnsupportedError
from fewbit.language.export.gguf_tokens import token_settings
from fewbit.language.gguf_tokenizer import SPLITS, read_text
from fewbit.language.text_files import TextFiles
from tests.language.test_gguf_tokenizer import TEXTS, byte_level, sentence_piece

VOCABULARY = 320


def checkpoint(text: TextFiles | None, vocabulary: int = VOCABULARY) -> Any:
    config = SimpleNamespace(vocabulary=vocabulary)
    return SimpleNamespace(text=text, config=config, path=Path("net"))


def text_of(values: dict[str, Any]) -> TextFiles:
    text = read_text(values.get, Path("net.gguf"))
    assert text is not None
    return text


def with_change(text: TextFiles, change: Callable[[dict[str, Any]], None]) -> TextFiles:
    data = json.loads(text.tokenizer)
    change(data)
    return TextFiles(json.dumps(data), text.template, text.end_tokens, text.special_tokens)


@pytest.mark.parametrize(
    "values",
    [
        *(byte_level(pre=pre) for pre in SPLITS),
        byte_level(add_bos_token=True, eot_token_id=266, eom_token_id=265),
        sentence_piece(),
        sentence_piece(add_space_prefix=False, add_bos_token=False, padding_token_id=0),
    ],
)
def test_a_tokenizer_comes_back(values: dict[str, Any]) -> None:
    text = text_of(values | {"tokenizer.chat_template": "{{ messages }}"})
    settings: dict[str, Any] = dict(token_settings(checkpoint(text)))
    back = text_of(settings)
    assert (back.template, back.end_tokens) == (text.template, text.end_tokens)
    assert back.special_tokens == text.special_tokens
    before, after = Tokenizer.from_str(text.tokenizer), Tokenizer.from_str(back.tokenizer)
    for each in [*TEXTS, "<|im_start|>hello<|im_end|>", "<s>hello world abba"]:
        assert after.encode(each).ids == before.encode(each).ids
    assert settings["tokenizer.ggml.tokens"][-1] == f"[PAD{VOCABULARY - 1}]"
    assert len(settings["tokenizer.ggml.token_type"]) == VOCABULARY


def test_merges_as_texts_and_unicodes_normal_form_are_understood() -> None:
    def change(data: dict[str, Any]) -> None:
        data["normalizer"] = {"type": "NFC"}
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]

    text = text_of(byte_level(pre="qwen2"))
    settings = token_settings(checkpoint(with_change(text, change)))
    assert settings["tokenizer.ggml.pre"] == "qwen2"
    assert text_of(settings).tokenizer == text_of(token_settings(checkpoint(text))).tokenizer


def of_another_type(data: dict[str, Any]) -> None:
    data["model"] = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}


def cut_at_spaces(data: dict[str, Any]) -> None:
    data["pre_tokenizer"] = {"type": "WhitespaceSplit"}


def lower(data: dict[str, Any]) -> None:
    data["normalizer"] = {"type": "Lowercase"}


def never_joined(data: dict[str, Any]) -> None:
    """Find tokens that no merge by scores gives: it joins any two that make a third."""
    del data["model"]["merges"][0]


def spaces_around(data: dict[str, Any]) -> None:
    data["added_tokens"][0]["rstrip"] = True


def words_first(data: dict[str, Any]) -> None:
    data["model"]["ignore_merges"] = True


@pytest.mark.parametrize(
    ("values", "change", "message"),
    [
        (byte_level(), of_another_type, "WordLevel, and not BPE"),
        (byte_level(), cut_at_spaces, "cuts text by a rule"),
        (byte_level(), lower, "normalizer"),
        (sentence_piece(), never_joined, "merges"),
        (byte_level(pre="qwen2"), words_first, "merges"),
        (byte_level(), spaces_around, "special tokens"),
    ],
)
def test_what_gguf_cannot_say_is_refused(
    values: dict[str, Any], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    text = with_change(text_of(values), change)
    with pytest.raises(UnsupportedError, match=message) as caught:
        token_settings(checkpoint(text))
    assert caught.value.hint


def test_more_ends_than_there_are_words_for() -> None:
    text = text_of(byte_level())
    more = TextFiles(text.tokenizer, None, (1, 2, 3), text.special_tokens)
    with pytest.raises(UnsupportedError, match="end at 4 tokens"):
        token_settings(checkpoint(more))


def test_no_tokenizer_and_one_of_another_model() -> None:
    assert token_settings(checkpoint(None)) == {"tokenizer.ggml.model": "no_vocab"}
    with pytest.raises(Error, match="the model's vocabulary is 100"):
        token_settings(checkpoint(text_of(byte_level()), vocabulary=100))
