"""Tokenizers: text to tokens, and tokens to text as they come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.errors import Error, MissingToolError, Place

if TYPE_CHECKING:
    from tokenizers import Tokenizer

INCOMPLETE = "\ufffd"
"""What stands for bytes that are no whole character."""
LONGEST = 6
"""How many tokens are waited for; a character has four bytes at most."""
LOOK_BACK = 4
INSTALL = "pip install 'fewbit[llm]'"


def require(package: str) -> Any:
    """Return a package of the extra for language models."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingToolError(f"{package} cannot be imported: {error}", hint=INSTALL) from None


def open_tokenizer(text: str, path: Path | None = None) -> Tokenizer:
    """Return the tokenizer that a `tokenizer.json` describes.

    Some have the padding and truncation of the batches that a model was trained with.
    """
    require("tokenizers")
    from tokenizers import Tokenizer

    place = Place(file=None if path is None else str(path))
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # it raises no narrower class
        what = f"this is no tokenizer: {str(error).partition(chr(10))[0]}"
        raise Error(what, place=place, hint="is the file whole?") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def lower_case_first(text: str) -> str:
    """Return a `tokenizer.json` that takes capital letters for small ones before all else."""
    described = json.loads(text)
    steps = [{"type": "Lowercase"}]
    if described.get("normalizer") is not None:
        steps.append(described["normalizer"])
    described["normalizer"] = {"type": "Sequence", "normalizers": steps}
    return json.dumps(described, ensure_ascii=False)


def cut_text(tokenizer: Tokenizer, text: str, most: int) -> list[int]:
    """Return up to so many tokens of a text, those that stand around every text among them."""
    tokenizer.enable_truncation(most)  # pyright: ignore[reportUnknownMemberType]
    try:
        return tokenizer.encode(text).ids
    finally:
        tokenizer.no_truncation()


def first_tokens(tokenizer: Tokenizer) -> list[int]:
    """Return the special tokens that every text begins with."""
    sample = tokenizer.encode("a")
    special = zip(sample.ids, sample.special_tokens_mask, strict=True)
    return [token for token, _ in takewhile(lambda each: each[1], special)]


def check_vocabulary(tokenizer: Tokenizer, vocabulary: int, path: Path) -> None:
    """Refuse a tokenizer with tokens that the model does not have."""
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if largest >= vocabulary:
        raise Error(
            f"the tokenizer has the token {largest}, and the model's vocabulary is {vocabulary}",
            place=Place(file=str(path)),
            hint="it is the tokenizer of another model",
        )


def stream_text(
    tokenizer: Tokenizer, tokens: Iterable[int], before: Sequence[int] = ()
) -> Iterator[str]:
    """Yield pieces of text as soon as tokens complete them; a character may take several.

    Decoding a token depends on the one before it: whether a space in front of it is part of the
    text. So what was shown last is decoded again with each piece; at first `before`, the prompt.
    """
    shown, waiting = list(before[-LOOK_BACK:]), list[int]()
    for token in tokens:
        waiting.append(token)
        piece = _text_behind(tokenizer, shown, waiting)
        if piece.endswith(INCOMPLETE) and len(waiting) < LONGEST:
            continue
        shown, waiting = waiting, []
        if piece:
            yield piece
    if rest := _text_behind(tokenizer, shown, waiting):
        yield rest


def _text_behind(tokenizer: Tokenizer, shown: list[int], waiting: list[int]) -> str:
    before = tokenizer.decode(shown)
    return tokenizer.decode([*shown, *waiting])[len(before) :]
