"""Windows of a text as inputs of a language model's program: for calibration, GPTQ and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.errors import UsageError
from fewbit.language.evaluate import WINDOW, cut_windows
from fewbit.language.text_files import (
    ENCODING,
    SETTINGS,
    TOKENIZER,
    EncodingSettings,
    GenerationSettings,
)
from fewbit.language.tokenizer import cut_text, first_tokens, open_tokenizer
from fewbit.program.program import Program

Array = np.ndarray[Any, Any]


def text_samples(
    program: Program, text: str, *, window: int | None = None, windows: int | None = None
) -> list[list[Array]]:
    """Return tokens and position for each window of a text, as `fewbit eval` reads them.

    Of an encoder, it is the tokens of each line, cut to `window` or to what the program reads.
    """
    if TOKENIZER not in program.files:
        raise UsageError(
            "this program has no tokenizer",
            hint="import a GGUF file or a Hugging Face folder: docs/language-models.md",
        )
    if ENCODING in program.files:
        return _line_samples(program, text, window, windows)
    settings = GenerationSettings.model_validate_json(program.files[SETTINGS])
    tokenizer = open_tokenizer(program.files[TOKENIZER].decode())
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    size = min(window or WINDOW, settings.context)
    cut = cut_windows(tokens, size, windows, first_tokens(tokenizer))
    return [[np.array([each.tokens]), np.array([0])] for each in cut]


def _line_samples(
    program: Program, text: str, window: int | None, windows: int | None
) -> list[list[Array]]:
    settings = EncodingSettings.model_validate_json(program.files[ENCODING])
    tokenizer = open_tokenizer(program.files[TOKENIZER].decode())
    most = min(window or settings.context, settings.context)
    lines = [line for line in text.splitlines() if line.strip()][:windows]
    return [[np.array([cut_text(tokenizer, settings.prompt + line, most)])] for line in lines]
