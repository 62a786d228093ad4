"""What is checked of a checkpoint before its model is traced.

That are the context, the tokenizer, what is kept of tokens, and what a call takes and gives.
"""

from __future__ import annotations

import warnings
from typing import get_args

from fewbit.errors import FewbitWarning, UsageError
from fewbit.language.checkpoint import WeightSource
from fewbit.language.config import Logits
from fewbit.language.text_files import TOKENIZER
from fewbit.language.tokenizer import check_vocabulary, open_tokenizer
from fewbit.quant.cache_scheme import CacheScheme

CONTEXT = 2048
"""Tokens that are kept where no other number is given, and the model allows as many."""
SMALLEST = 8
MOST_SEQUENCES = 256
"""Sequences that one program decodes together."""


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


def check_decoding(logits: str, sequences: int) -> None:
    """Refuse logits that there are not, and a number of sequences that no program has."""
    if logits not in get_args(Logits):
        raise UsageError(
            f"there are no logits of '{logits}'", hint=f"give {' or '.join(get_args(Logits))}"
        )
    if not 1 <= sequences <= MOST_SEQUENCES:
        raise UsageError(
            f"{sequences} sequences cannot be decoded together", hint=f"1 to {MOST_SEQUENCES} can"
        )


def check_alone(what: str, cache: CacheScheme, logits: Logits, sequences: int) -> None:
    """Refuse what is asked of decoders that are read from a checkpoint, and of no other model."""
    asked = [
        *([f"a cache of {cache}"] if cache.is_quantized else []),
        *(["all logits"] if logits == "all" else []),
        *([f"{sequences} sequences"] if sequences > 1 else []),
    ]
    if asked:
        raise UsageError(
            f"{what} has no {' and no '.join(asked)}",
            hint="these are for the families of decoders in docs/language-models.md",
        )


def check_cache(source: WeightSource, cache: CacheScheme, width: int) -> None:
    """Refuse rotations of blocks that do not divide a head, and halves of one that is odd."""
    block = cache.hadamard
    if block is not None and width % block:
        largest = width & -width
        raise UsageError(
            f"blocks of {block} do not divide the {width} channels of a head",
            place=source.place,
            hint=f"blocks of {largest} do: {cache.kind}h{largest}"
            if largest > 1
            else "leave the rotation out",
        )
    if cache.kind == "q4" and width % 2:
        raise UsageError(
            f"heads of {width} channels have no halves", place=source.place, hint="keep them as q8"
        )
