"""What is checked of a checkpoint before its model is traced: the context, and the tokenizer."""

from __future__ import annotations

import warnings

from fewbit.errors import FewbitWarning, UsageError
from fewbit.language.checkpoint import WeightSource
from fewbit.language.text_files import TOKENIZER
from fewbit.language.tokenizer import check_vocabulary, open_tokenizer

CONTEXT = 2048
"""Tokens that are kept where no other number is given, and the model allows as many."""
SMALLEST = 8


def choose_context(source: WeightSource, longest: int | None, asked: int | None) -> int:
    """Return how many tokens a program is for; `longest` is what the model allows, None for all."""
    if asked is None:
        return min(longest or CONTEXT, CONTEXT)
    if asked < SMALLEST or (longest is not None and asked > longest):
        trained = f"the model was trained for {longest}, and " if longest is not None else ""
        raise UsageError(
            f"a context of {asked} tokens is not possible",
            place=source.place,
            hint=f"{trained}{SMALLEST} is the smallest",
        )
    return asked


def check_text(source: WeightSource, vocabulary: int) -> None:
    """Warn where there is no tokenizer, and refuse one of another model."""
    if source.text is None:
        warnings.warn(
            f"the checkpoint has no {TOKENIZER}: what is compiled takes tokens, and no text",
            FewbitWarning,
            stacklevel=2,
        )
        return
    check_vocabulary(open_tokenizer(source.text.tokenizer), vocabulary, source.path)
