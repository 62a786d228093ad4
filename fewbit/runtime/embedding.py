"""Vectors of texts from a compiled encoder, and how near they come to those of another.

    vector = artifact.embed("a text")

A text is run by itself, without padding, so its vector does not depend on other texts. Where the
checkpoint does not say how the states of tokens become one vector, it is their mean, as it is in
sentence-transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.base.progress import progress
from fewbit.errors import StoreError, UsageError
from fewbit.language.text_files import ENCODING, EncodingSettings
from fewbit.language.tokenizer import cut_text
from fewbit.numerics.fidelity import cosine_similarity
from fewbit.program.artifact import KIND, Folder
from fewbit.runtime.generation import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from fewbit.runtime import Artifact

Array = np.ndarray[Any, Any]


class TextEncoding:
    """What an artifact of an encoder has beside its library."""

    def __init__(self, folder: Folder) -> None:
        if ENCODING not in folder.manifest.files:
            raise UsageError(
                "this is no encoder that was compiled from a checkpoint",
                hint="compile the Hugging Face folder of one: docs/language-models.md#encoders",
            )
        self._folder = folder

    @cached_property
    def settings(self) -> EncodingSettings:
        path = self._folder.file(ENCODING)
        return KIND.parse_manifest(EncodingSettings, path.read_bytes(), path)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._folder)

    def encode(self, text: str, *, most: int | None = None) -> list[int]:
        """Return the tokens of a text, those that stand around every text among them.

        A text of more than `most` tokens is cut; one that does not fit is refused.
        """
        context, whole = self.settings.context, self.settings.prompt + text
        tokenizer = self.tokenizer
        tokens = tokenizer.encode(whole).ids if most is None else cut_text(tokenizer, whole, most)
        if len(tokens) > context:
            raise UsageError(
                f"the text is {len(tokens)} tokens long, and the encoder reads {context}",
                hint="shorten it, cut it by embed(text, truncate=True), or compile with a larger "
                "context: --context",
            )
        if not tokens:
            raise UsageError("the text is empty")
        return tokens


def embed_tokens(artifact: Artifact, tokens: Sequence[int], threads: int | None = None) -> Array:
    """Return the vector of a text that is given by its tokens."""
    options = {} if threads is None else {"threads": threads}
    result: Array = np.asarray(artifact.run(np.array([tokens]), **options)[0])[0]
    if not np.isfinite(result).all():
        raise StoreError("the encoder gave states that are no numbers")
    return result if result.ndim == 1 else result.mean(axis=0, dtype=np.float64).astype(np.float32)


@dataclass(frozen=True)
class EmbeddingScore:
    """How near the vectors of texts come to those of a reference, by their cosines."""

    texts: int
    mean: float
    minimum: float


def compare_embeddings(
    artifact: Artifact, reference: Artifact, texts: Sequence[str], threads: int | None = None
) -> EmbeddingScore:
    """Return the cosines of texts' vectors; what is longer than both read is cut."""
    if not texts:
        raise UsageError("there is no text to compare vectors of")
    both = artifact.text_encoding, reference.text_encoding
    most = min(each.settings.context for each in both)
    tokens, expected = ([each.encode(text, most=most) for text in texts] for each in both)
    if tokens != expected:
        raise UsageError(
            "the two models cut this text into other tokens, so they cannot be compared",
            hint="compare two forms of one model",
        )
    cosines: list[float] = []
    with progress("Evaluating", len(tokens)) as step:
        for each in tokens:
            vector, wanted = (embed_tokens(a, each, threads) for a in (artifact, reference))
            if vector.shape != wanted.shape:
                raise UsageError(
                    f"vectors have {len(vector)} elements, and those of the reference {len(wanted)}"
                )
            cosines.append(cosine_similarity(wanted, vector))
            step()
    return EmbeddingScore(len(cosines), float(np.mean(cosines)), min(cosines))
