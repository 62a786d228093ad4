"""A tokenizer in the words of GGUF: tokens by number, merges or scores, and the name of a rule.

GGUF can say less than a `tokenizer.json`. So what is to be written is read again, by the reader of
such files, and compared; a tokenizer that comes back as another one is refused. Unicode's normal
form (Qwen) is left out, because llama.cpp, too, takes text as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import Place, UnsupportedError
from fewbit.language.checkpoint import Checkpoint
from fewbit.language.export.gguf_layout import Setting
from fewbit.language.gguf_tokenizer import (
    CONTROL,
    DEFINED,
    ENDS,
    SPLITS,
    UNKNOWN,
    make_splitter,
    read_text,
)
from fewbit.language.text_files import TextFiles
from fewbit.language.tokenizer import check_vocabulary, first_tokens, open_tokenizer

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

NORMAL, UNUSED, BYTE = 1, 5, 6
"""Kinds of tokens, beside those of the reader."""
PREFIX = "tokenizer.ggml."
SPECIAL = {"bos_token": "bos", "unk_token": "unknown", "pad_token": "padding"}
"""Special tokens in Hugging Face's words, and GGUF's."""
FLAGS = ("special", "lstrip", "rstrip", "single_word")
"""What is said of a token that is found before text is cut."""
HINT = "export it without a tokenizer, from a folder without tokenizer.json"


def token_settings(checkpoint: Checkpoint) -> dict[str, Setting]:
    """Return the settings of a tokenizer; none where a checkpoint has none."""
    if checkpoint.text is None:
        return {f"{PREFIX}model": "no_vocab"}
    tokenizer = open_tokenizer(checkpoint.text.tokenizer)
    check_vocabulary(tokenizer, checkpoint.config.vocabulary, checkpoint.path)
    try:
        settings = _describe(checkpoint.text, checkpoint.config.vocabulary)
        _compare(checkpoint, settings)
    except UnsupportedError as error:
        raise UnsupportedError(
            error.what, place=Place(file=str(checkpoint.path)), hint=error.hint or HINT
        ) from None
    return settings


def _describe(text: TextFiles, vocabulary: int) -> dict[str, Setting]:
    data = json.loads(text.tokenizer)
    model: dict[str, Any] = data["model"]
    if model.get("type") != "BPE":
        raise UnsupportedError(f"the tokenizer is of the type {model.get('type')}, and not BPE")
    tokens, kinds = _tokens(data, vocabulary)
    named: dict[str, Setting] = {"tokens": tokens, "token_type": kinds}
    if model.get("byte_fallback"):
        named |= {"model": "llama", "pre": "default", "scores": _scores(model, tokens)}
        named["add_space_prefix"] = "Prepend" in json.dumps(data.get("normalizer"))
    else:
        merges = [" ".join(pair) for pair in _merges(model)]
        named |= {"model": "gpt2", "pre": _split_name(data), "merges": merges}
    named |= _special(text, tokens)
    named["add_bos_token"] = bool(first_tokens(open_tokenizer(text.tokenizer)))
    settings = {f"{PREFIX}{name}": value for name, value in named.items()}
    return settings | ({"tokenizer.chat_template": text.template} if text.template else {})


def _tokens(data: Mapping[str, Any], vocabulary: int) -> tuple[list[str], list[int]]:
    """Return all tokens and their kinds; numbers without a token have one that is not used."""
    tokens = [f"[PAD{number}]" for number in range(vocabulary)]
    kinds = [UNUSED] * vocabulary
    by_bytes = data["model"].get("byte_fallback")
    for token, number in data["model"]["vocab"].items():
        is_byte = by_bytes and token.startswith("<0x") and token.endswith(">") and len(token) == 6
        tokens[number], kinds[number] = token, BYTE if is_byte else NORMAL
    for added in cast("list[dict[str, Any]]", data.get("added_tokens") or []):
        number, token = added["id"], added["content"]
        tokens[number], kinds[number] = token, CONTROL if added["special"] else DEFINED
        if added["special"] and token == data["model"].get("unk_token"):
            kinds[number] = UNKNOWN
    return tokens, kinds


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of tokens; older files have them as one text."""
    pairs: list[Any] = model.get("merges") or []
    split = (pair.split(" ", 1) if isinstance(pair, str) else pair for pair in pairs)
    return [(str(left), str(right)) for left, right in split]


def _scores(model: Mapping[str, Any], tokens: list[str]) -> list[float]:
    """Return scores by which pairs are joined in the order of the merges."""
    order: dict[str, int] = {}
    for left, right in _merges(model):
        order.setdefault(left + right, len(order))
    return [-float(order.get(token, len(order))) for token in tokens]


def _split_name(data: Mapping[str, Any]) -> str:
    own = _steps(data.get("pre_tokenizer"))
    for name in SPLITS:
        if own == _steps(_as_json(make_splitter(name))):
            return name
    raise UnsupportedError("the tokenizer cuts text by a rule that GGUF has no name for")


def _as_json(splitter: PreTokenizer) -> Any:
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter
    return json.loads(tokenizer.to_str())["pre_tokenizer"]


def _steps(splitter: Any) -> list[tuple[Any, ...]]:
    """Return what a pre-tokenizer does, without what concerns offsets only."""
    if splitter is None:
        return []
    if splitter["type"] == "Sequence":
        return [step for each in splitter["pretokenizers"] for step in _steps(each)]
    if splitter["type"] == "ByteLevel":
        return [("ByteLevel", splitter["add_prefix_space"], splitter.get("use_regex", True))]
    return [tuple(sorted((key, json.dumps(value)) for key, value in splitter.items()))]


def _special(text: TextFiles, tokens: list[str]) -> dict[str, Setting]:
    numbers = {token: number for number, token in enumerate(tokens)}
    given = text.special_tokens or {}
    found: dict[str, Setting] = {
        f"{ours}_token_id": numbers[given[theirs]]
        for theirs, ours in SPECIAL.items()
        if given.get(theirs) in numbers
    }
    own = [numbers[given["eos_token"]]] if given.get("eos_token") in numbers else []
    ends = list(dict.fromkeys([*own, *text.end_tokens]))
    if len(ends) > len(ENDS):
        raise UnsupportedError(
            f"answers end at {len(ends)} tokens, and GGUF has words for {len(ENDS)}",
            hint="leave some out of eos_token_id in generation_config.json",
        )
    return found | {f"{name}_token_id": number for name, number in zip(ENDS, ends, strict=False)}


def _compare(checkpoint: Checkpoint, settings: Mapping[str, Setting]) -> None:
    assert checkpoint.text is not None
    back = read_text(settings.get, checkpoint.path)
    assert back is not None
    own, read = _parts(checkpoint.text.tokenizer), _parts(back.tokenizer)
    for what, value in own.items():
        found = read[what]
        if what == "tokens":
            found = {number: token for number, token in found.items() if number in value}
        if value != found:
            raise UnsupportedError(f"GGUF has no words for the {what} of this tokenizer")


def _parts(text: str) -> dict[str, Any]:
    """Return all that decides on tokens."""
    data = json.loads(text)
    added = cast("list[dict[str, Any]]", data.get("added_tokens") or [])
    normalizer = data.get("normalizer")
    vocabulary = data["model"]["vocab"] | {each["content"]: each["id"] for each in added}
    return {
        "tokens": {number: token for token, number in vocabulary.items()},
        "special tokens": {each["content"]: [each.get(flag) for flag in FLAGS] for each in added},
        "merges": (_merges(data["model"]), bool(data["model"].get("ignore_merges"))),
        "cuts": _steps(data.get("pre_tokenizer")),
        "normalizer": None if normalizer == {"type": "NFC"} else normalizer,
        "first tokens": first_tokens(open_tokenizer(text)),
    }
