"""What turns text into tokens and back, as files beside the compiled library.

The tokenizer is a `tokenizer.json` of the package `tokenizers`, whatever it was read from; a chat
template is as its model has it, in Jinja. A model without a tokenizer takes and gives tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fewbit.base.folders import Record
from fewbit.language.config import Decoding, Logits

TOKENIZER = "tokenizer.json"
TEMPLATE = "chat_template.jinja"
SETTINGS = "generation.json"
"""Beside decoders."""
ENCODING = "encoding.json"
"""Beside encoders."""


class GenerationSettings(Record):
    """What a run has to know beside the program."""

    format: Literal["fewbit-generation"] = "fewbit-generation"
    version: Literal[1] = 1
    context: int
    """How many tokens the caches hold."""
    sequences: int = 1
    """How many texts are decoded together."""
    logits: Logits = "last"
    """Whether a call gives those behind its last token, or behind all."""
    steps: bool = False
    """Whether a call takes one token of each text, and not any number."""
    vocabulary: int
    end_tokens: tuple[int, ...] = ()
    """Tokens at which an answer ends."""
    special_tokens: dict[str, str] = Field(default_factory=dict[str, str])
    """Texts that chat templates name: `bos_token`, `eos_token`, and so on."""


class EncodingSettings(Record):
    """What a run of an encoder has to know beside the program."""

    format: Literal["fewbit-encoding"] = "fewbit-encoding"
    version: Literal[1] = 1
    context: int
    """The longest text, in tokens."""
    vocabulary: int
    prompt: str = ""
    """What is put before every text."""


@dataclass(frozen=True)
class TextFiles:
    """What a checkpoint says of text."""

    tokenizer: str
    """As `tokenizers` writes it."""
    template: str | None = None
    end_tokens: tuple[int, ...] = ()
    special_tokens: Mapping[str, str] | None = None


def files_for(text: TextFiles | None, decoding: Decoding, vocabulary: int) -> dict[str, bytes]:
    """Return what is written beside a library, by the names of files."""
    settings = GenerationSettings(
        context=decoding.context,
        sequences=decoding.sequences,
        logits=decoding.logits,
        steps=decoding.steps,
        vocabulary=vocabulary,
        end_tokens=text.end_tokens if text else (),
        special_tokens=dict(text.special_tokens or {}) if text else {},
    )
    files = {SETTINGS: settings.to_text().encode()}
    if text is not None:
        files[TOKENIZER] = text.tokenizer.encode()
        if text.template is not None:
            files[TEMPLATE] = text.template.encode()
    return files


def encoder_files(
    text: TextFiles | None, context: int, vocabulary: int, prompt: str = ""
) -> dict[str, bytes]:
    """Return what is written beside the library of an encoder, by the names of files."""
    settings = EncodingSettings(context=context, vocabulary=vocabulary, prompt=prompt)
    files = {ENCODING: settings.to_text().encode()}
    if text is not None:
        files[TOKENIZER] = text.tokenizer.encode()
    return files
