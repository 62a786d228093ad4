"""Text from a compiled language model: a prompt in, pieces of text out as they are decoded.

    for piece in artifact.generate("Once upon a time", tokens=64):
        print(piece, end="")

One session reads the prompt in one call and then decodes token by token. Its caches hold a fixed
number of tokens, the context, which is never passed: a prompt that does not fit is refused, and
decoding ends where the context does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from fewbit.errors import StoreError, UsageError
from fewbit.language.chat import Message, render_chat
from fewbit.language.sampling import Sampler
from fewbit.language.text_files import (
    ENCODING,
    SETTINGS,
    TEMPLATE,
    TOKENIZER,
    GenerationSettings,
)
from fewbit.language.tokenizer import open_tokenizer, stream_text
from fewbit.program.artifact import KIND, Folder
from fewbit.runtime.decode_session import DecodeSession
from fewbit.runtime.native import Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Prompt = str | Sequence[Message] | Sequence[int]
"""A text, the messages of a conversation, or tokens."""
STOP, LENGTH, CONTEXT = "stop", "length", "context"
"""Why decoding ended: the model said so, enough tokens, or a full context."""


def load_tokenizer(folder: Folder) -> Tokenizer:
    """Return the tokenizer that is beside a library."""
    if TOKENIZER not in folder.manifest.files:
        raise UsageError(
            "the checkpoint had no tokenizer, so this takes tokens and no text",
            hint=f"compile it again from a folder with {TOKENIZER} in it",
        )
    path = folder.file(TOKENIZER)
    return open_tokenizer(path.read_text(encoding="utf-8"), path)


class TextModel:
    """What an artifact of a language model has beside its library."""

    def __init__(self, folder: Folder) -> None:
        if ENCODING in folder.manifest.files:
            raise UsageError(
                "this is an encoder, which does not go on with a text",
                hint="artifact.embed(text) is its vector; compare_embeddings(texts, against) says "
                "how near vectors are to another's",
            )
        if SETTINGS not in folder.manifest.files:
            raise UsageError(
                "this is no language model that was compiled from a checkpoint",
                hint="compile a GGUF file or a Hugging Face folder: docs/language-models.md",
            )
        self._folder = folder

    @cached_property
    def settings(self) -> GenerationSettings:
        path = self._folder.file(SETTINGS)
        return KIND.parse_manifest(GenerationSettings, path.read_bytes(), path)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._folder)

    @cached_property
    def template(self) -> str | None:
        if TEMPLATE not in self._folder.manifest.files:
            return None
        return self._folder.file(TEMPLATE).read_text(encoding="utf-8")

    def encode(self, prompt: Prompt, *, chat: bool = False) -> list[int]:
        """Return the tokens of a prompt; with `chat`, of a question in the model's template."""
        if isinstance(prompt, str) and not chat:
            return self.tokenizer.encode(prompt).ids
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        if all(isinstance(message, int | np.integer) for message in messages):
            return self._check_tokens([int(token) for token in messages])  # pyright: ignore[reportArgumentType]
        if self.template is None:
            raise UsageError("the model has no chat template", hint="give a plain prompt")
        text = render_chat(self.template, messages, self.settings.special_tokens)  # pyright: ignore[reportArgumentType]
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def _check_tokens(self, tokens: list[int]) -> list[int]:
        vocabulary = self.settings.vocabulary
        if odd := next((token for token in tokens if not 0 <= token < vocabulary), None):
            raise UsageError(f"there is no token {odd}", hint=f"tokens are below {vocabulary}")
        return tokens

    def check_room(self, prompt: Sequence[int]) -> None:
        """Refuse a prompt that leaves no room for a token behind it."""
        context = self.settings.context
        if not prompt:
            raise UsageError("the prompt is empty", hint="give at least one token")
        if len(prompt) >= context:
            raise UsageError(
                f"the prompt is {len(prompt)} tokens long, and the context holds {context}",
                hint="shorten it, or compile with a larger context: --context "
                f"{1 << len(prompt).bit_length()}",
            )


def several_texts(prompt: Prompt | list[str]) -> list[str] | None:
    """Return prompts that are a list of texts; None where it is one, of messages or tokens."""
    if not isinstance(prompt, list) or not prompt:
        return None
    texts = [each for each in prompt if isinstance(each, str)]
    return texts if len(texts) == len(prompt) else None


def choose_token(sampler: Sampler, logits: Array) -> int:
    """Return the token behind the last of those whose logits are given."""
    last = logits[-1]
    if not np.isfinite(last).all():
        raise StoreError("the model gave logits that are no numbers")
    return sampler.choose(last)


class Generation:
    """Pieces of text as they are decoded, and afterwards why and where it ended."""

    def __init__(
        self,
        model: TextModel,
        session: DecodeSession,
        prompt: Sequence[int],
        tokens: int,
        sampler: Sampler,
    ) -> None:
        model.check_room(prompt)
        if tokens < 0:
            raise UsageError(f"{tokens} tokens cannot be decoded")
        self.prompt = list(prompt)
        self.tokens: list[int] = []
        """What was decoded so far, without the token that ends an answer."""
        self.finish = LENGTH
        self.step_seconds: list[float] = []
        """How long each call took; the first reads the prompt."""
        self._model = model
        self._session = session
        self._sampler = sampler
        self._most = min(tokens, model.settings.context - len(prompt))
        self._is_cut = self._most < tokens
        self._text = stream_text(model.tokenizer, self.decode(), self.prompt)

    def __iter__(self) -> Iterator[str]:
        return self._text

    def __next__(self) -> str:
        return next(self._text)

    def decode(self) -> Iterator[int]:
        """Yield tokens."""
        given, position = self.prompt, 0
        ends = self._model.settings.end_tokens
        for _ in range(self._most):
            start = perf_counter()
            logits = self._session.decode([given], [position])[0]
            self.step_seconds.append(perf_counter() - start)
            token = choose_token(self._sampler, logits)
            if token in ends:
                self.finish = STOP
                return
            self.tokens.append(token)
            yield token
            position += len(given)
            given = [token]
        self.finish = CONTEXT if self._is_cut else LENGTH
