"""Windows of a text as inputs of a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.language.samples import text_samples
from fewbit.language.tokenizer import first_tokens, open_tokenizer
from tests.language.checkpoints import write_gguf

TEXT = "hello world, hello hello world; some more text of it. " * 4


def test_samples_are_the_tokens_of_a_text(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf")
    program = fewbit.import_model(tmp_path / "net.gguf", context=16)
    samples = text_samples(program, TEXT, windows=3)
    tokenizer = open_tokenizer(program.files["tokenizer.json"].decode())
    assert first_tokens(tokenizer) == []
    expected = tokenizer.encode(TEXT).ids
    assert [tokens.shape for tokens, _ in samples] == [(1, 16)] * 3
    np.testing.assert_array_equal(np.concatenate([s[0][0] for s in samples]), expected[:48])
    assert all(position.tolist() == [0] for _, position in samples)
    assert text_samples(program, TEXT, window=8, windows=1)[0][0].shape == (1, 8)


def test_a_program_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(UsageError, match="no tokenizer"):
        text_samples(fewbit.import_model("zoo:mlp"), TEXT)
