"""Artifacts, evaluated: a language model on a text, any other by its outputs beside another's.

    art.evaluate(text, against=reference)

What is evaluated is the code that runs, with its rounding. An artifact that gives the logits of all
tokens reads a window in a few calls; one that gives those of the last alone decodes it token by
token, as an answer is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.base.progress import progress
from fewbit.errors import ShapeError, UsageError
from fewbit.language.evaluate import WINDOW, Predict, TextScore, cut_windows, score_text
from fewbit.language.tokenizer import first_tokens
from fewbit.numerics.fidelity import cosine_similarity, signal_to_noise
from fewbit.program.calls import Outputs
from fewbit.runtime.session import StatefulRunner

if TYPE_CHECKING:
    from fewbit.runtime import Artifact

Array = np.ndarray[Any, Any]
LOGITS = 1 << 24
"""How many are computed at once, at most: 64 MiB."""


def evaluate_text(
    artifact: Artifact,
    text: str | Sequence[int],
    *,
    against: Artifact | None = None,
    window: int | None = None,
    windows: int | None = None,
    threads: int | None = None,
) -> TextScore:
    """Return the perplexity on a text or its tokens, and how far the model is from another.

    Windows have 512 tokens, or as many as the smallest context holds; `windows` is how many of the
    text's first ones are read.
    """
    models = [artifact] if against is None else [artifact, against]
    for each in models:
        _check(each)
    context = min(each.text_model.settings.context for each in models)
    if window is not None and window > context:
        raise UsageError(
            f"a window of {window} tokens does not fit into the context, which holds {context}",
            hint=f"choose up to {context}, or compile with a larger context: --context {window}",
        )
    prefix, tokens = _tokens(artifact, text)
    if against is not None and _tokens(against, text) != (prefix, tokens):
        raise UsageError(
            "the two models cut this text into other tokens, so they cannot be compared",
            hint="compare two forms of one model",
        )
    cut = cut_windows(tokens, window or min(WINDOW, context), windows, prefix)
    predict, *reference = (_predict(each, threads) for each in models)
    with progress("Evaluating", sum(len(each.tokens) - each.skip for each in cut)) as step:
        return score_text(cut, predict, reference[0] if reference else None, step)


def _check(artifact: Artifact) -> None:
    _ = artifact.text_model
    if not isinstance(artifact.runner, StatefulRunner):
        raise UsageError(
            f"this was compiled for {artifact.manifest.target}, and text is evaluated by libraries "
            "for this machine",
            hint="compile it for the target cpu",
        )


def _tokens(artifact: Artifact, text: str | Sequence[int]) -> tuple[list[int], list[int]]:
    """Return what a text begins with in this model, and the text's own tokens."""
    model = artifact.text_model
    if not isinstance(text, str):
        return [], model.encode(list(text))
    tokens = model.tokenizer.encode(text, add_special_tokens=False).ids
    return first_tokens(model.tokenizer), tokens


def _predict(artifact: Artifact, threads: int | None) -> Predict:
    session, settings = artifact.decode_session(threads=threads), artifact.text_model.settings
    at_once = max(LOGITS // settings.vocabulary, 1) if settings.logits == "all" else 1

    def predict(tokens: Sequence[int]) -> Iterator[Array]:
        session.reset()
        for position in range(0, len(tokens), at_once):
            yield from session.decode([tokens[position : position + at_once]], [position])[0]

    return predict


@dataclass(frozen=True)
class OutputScore:
    """How near an output comes to that of a reference."""

    cosine: float
    snr: float
    """In decibels."""


def compare_outputs(reference: Outputs, given: Outputs) -> dict[str, OutputScore]:
    """Return how near each output comes to the reference's, by its name."""
    if len(reference) != len(given):
        raise UsageError(f"{len(given)} outputs, and the reference has {len(reference)}")
    scores: dict[str, OutputScore] = {}
    for expected, (name, actual) in zip(reference, given.items(), strict=True):
        if expected.shape != actual.shape:
            raise ShapeError(
                f"output '{name}' is {actual.shape}, and that of the reference {expected.shape}"
            )
        scores[name] = OutputScore(
            cosine_similarity(expected, actual), signal_to_noise(expected, actual)
        )
    return scores
