"""Tokenizers that are built from what a GGUF file has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from fewbit.errors import UnsupportedError
from fewbit.language.gguf_tokenizer import SPLITS, merges_by_score, read_text
from fewbit.language.tokenizer import stream_text
from tests.language.checkpoints import byte_tokens

TEXTS = ["hello world", "  12 345\n\tx", "Grüße, 世界 🙂!", "it's  DON'T\r\n\r\n ok"]
BYTES = [f"<0x{number:02X}>" for number in range(256)]


def byte_level(**changes: Any) -> dict[str, Any]:
    tokens, merges, kinds = byte_tokens()
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": tokens.index("<|im_start|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        **{f"tokenizer.ggml.{name}": value for name, value in changes.items()},
    }


def sentence_piece(**changes: Any) -> dict[str, Any]:
    letters = ["▁", *"helowrdab"]
    words = ["he", "ll", "hell", "hello", "▁hello", "▁w", "or", "▁wor", "ld", "▁world", "ab"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *letters, *words]
    first = len(tokens) - len(words)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)],
        "tokenizer.ggml.scores": [0.0] * first + [-float(n) for n in range(len(words))],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **{f"tokenizer.ggml.{name}": value for name, value in changes.items()},
    }


def build(values: dict[str, Any]) -> Tokenizer:
    text = read_text(values.get, Path("net.gguf"))
    assert text is not None
    return Tokenizer.from_str(text.tokenizer)


@pytest.mark.parametrize("pre", SPLITS)
@pytest.mark.parametrize("text", TEXTS)
def test_any_text_comes_back(pre: str, text: str) -> None:
    tokenizer = build(byte_level(pre=pre))
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert "".join(stream_text(tokenizer, ids)) == text


def test_merges_and_digits() -> None:
    tokenizer = build(byte_level())
    assert tokenizer.encode("hello world").tokens == ["hello", "Ġworld"]
    assert tokenizer.encode("12").tokens == ["1", "2"]


def test_control_tokens_are_found_in_text_and_left_out_of_it() -> None:
    tokenizer = build(byte_level())
    encoded = tokenizer.encode("<|im_start|>hello<|im_end|>")
    assert encoded.tokens == ["<|im_start|>", "hello", "<|im_end|>"]
    assert tokenizer.decode(encoded.ids) == "hello"


def test_a_first_token_is_added_where_the_file_says_so() -> None:
    assert build(byte_level()).encode("hello").tokens == ["hello"]
    asked = build(byte_level(add_bos_token=True))
    assert asked.encode("hello").tokens == ["<|im_start|>", "hello"]
    assert asked.encode("hello", add_special_tokens=False).tokens == ["hello"]
    assert build(sentence_piece()).encode("hello").tokens == ["<s>", "▁hello"]
    assert build(sentence_piece(add_bos_token=False)).encode("hello").tokens == ["▁hello"]


def test_scores_decide_which_pair_is_joined() -> None:
    vocabulary = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}
    merges = merges_by_score(vocabulary, [0, 0, 0, -2, -1, -3])
    assert merges == [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c")]


@pytest.mark.parametrize("text", TEXTS)
def test_sentence_pieces_fall_back_to_bytes(text: str) -> None:
    tokenizer = build(sentence_piece())
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert "".join(stream_text(tokenizer, ids[1:])) == text


def test_special_texts_are_kept() -> None:
    text = read_text(byte_level(eot_token_id=5).get, Path("net.gguf"))
    assert text is not None
    assert text.special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert text.end_tokens == (byte_tokens()[0].index("<|im_end|>"), 5)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"pre": "tekken"}, "cuts text as 'tekken'"),
        ({"model": "t5"}, "tokenizer 't5'"),
        ({"model": "llama"}, "neither merges nor scores"),
    ],
)
def test_what_is_not_known_is_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        build(byte_level(**changes))


def test_a_file_without_tokens_has_no_text() -> None:
    assert read_text({"tokenizer.ggml.model": "no_vocab"}.get, Path("net.gguf")) is None


def test_words_of_llama_3_that_are_tokens_are_not_merged_from_parts() -> None:
    tokens = [*byte_level()["tokenizer.ggml.tokens"], "odd"]
    kinds = [*byte_level()["tokenizer.ggml.token_type"], 1]
    for pre, expected in (("llama-bpe", ["odd"]), ("qwen2", ["o", "d", "d"])):
        tokenizer = build(byte_level(pre=pre, tokens=tokens, token_type=kinds))
        assert tokenizer.encode("odd").tokens == expected
