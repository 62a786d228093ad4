"""Encoders of each family, compiled and compared with PyTorch and the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from xdsl.dialects.func import FuncOp

import fewbit
from fewbit.errors import FewbitWarning, UsageError
from fewbit.frontends.language import build_encoder, open_encoder
from fewbit.frontends.torch import import_torch
from fewbit.ir.symbols import SymbolTable
from fewbit.program.output_names import name_outputs
from fewbit.program.program import Program
from tests.frontends.language.test_repeat_layers import plain_text
from tests.language.encoder_checkpoints import (
    SETTINGS,
    VOCABULARY,
    write_encoder,
    write_sentence_encoder,
    write_words,
)

CONTEXT = 32
LENGTHS = (20, 1, 32)


def tokens_of(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(4, VOCABULARY, (1, length))


def import_all_layers(folder: Path) -> Program:
    """Import an encoder with each of its layers traced."""
    model = build_encoder(open_encoder(folder), CONTEXT)
    length = torch.export.Dim("length", min=2, max=CONTEXT)
    given = (torch.zeros(1, 4, dtype=torch.int64),)
    return import_torch(model, given, dynamic_shapes=({1: length},))


@pytest.mark.parametrize("case", ["bert", "t5-gated"])
def test_repeated_layers_are_those_that_tracing_all_gives(case: str, tmp_path: Path) -> None:
    depth = {"num_layers": 3} if case.startswith("t5") else {"num_hidden_layers": 3}
    write_encoder(tmp_path, case, **depth)
    write_words(tmp_path)
    program, whole = fewbit.import_model(tmp_path, context=CONTEXT), import_all_layers(tmp_path)
    program.verify()
    main = SymbolTable(whole.module)["main"]
    assert isinstance(main, FuncOp)
    name_outputs(main, ["last_hidden_state"])
    assert plain_text(program) == plain_text(whole)
    assert program.signature == whole.signature
    assert set(program.store) == set(whole.store)
    for key in whole.store:
        np.testing.assert_array_equal(program.store[key], whole.store[key])


@pytest.mark.slow
@pytest.mark.parametrize("case", SETTINGS)
def test_a_family_compiles_to_what_its_module_computes(case: str, tmp_path: Path) -> None:
    write_encoder(tmp_path, case)
    with pytest.warns(FewbitWarning, match="takes tokens, and no text"):
        program = fewbit.import_model(tmp_path, context=CONTEXT)
    compiled = fewbit.compile(program)
    model = build_encoder(open_encoder(tmp_path), CONTEXT)
    for length in LENGTHS:
        tokens = tokens_of(length)
        with torch.no_grad():
            expected = model(torch.tensor(tokens)).numpy()
        np.testing.assert_allclose(program.run(tokens)[0], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(compiled(tokens), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("recipe", ["w8a8", "w4a8g32h32-mse"])
def test_few_bits_are_those_of_the_interpreter(recipe: str, tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path)
    program = fewbit.quantize(fewbit.import_model(tmp_path, context=CONTEXT), recipe, strict=True)
    compiled = fewbit.compile(program)
    for length in LENGTHS:
        expected = program.run(tokens_of(length))[0]
        np.testing.assert_allclose(compiled(tokens_of(length)), expected, rtol=1e-5, atol=1e-6)
        assert np.linalg.norm(expected) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("case", ["roberta", "t5"])
def test_all_weights_have_few_bits(case: str, tmp_path: Path) -> None:
    write_encoder(tmp_path, case)
    write_words(tmp_path)
    fewbit.quantize(fewbit.import_model(tmp_path), "w8a8", strict=True)


def test_what_a_folder_gives(tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path / "sentences")
    program = fewbit.import_model(tmp_path / "sentences")
    assert str(program.signature) == "main(tokens: 1x?xi64) -> (embedding: 1x64xf32)"
    assert set(program.files) == {"encoding.json", "tokenizer.json"}
    write_encoder(tmp_path / "states", "bert")
    write_words(tmp_path / "states")
    program = fewbit.import_model(tmp_path / "states")
    assert str(program.signature) == "main(tokens: 1x?xi64) -> (last_hidden_state: 1x?x64xf32)"


def test_contexts(tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    assert b'"context": 24' in fewbit.import_model(tmp_path).files["encoding.json"]
    assert b'"context": 40' in fewbit.import_model(tmp_path, context=40).files["encoding.json"]
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 512}')
    assert b'"context": 40' in fewbit.import_model(tmp_path).files["encoding.json"]
    with pytest.raises(UsageError, match="41 tokens is not possible") as caught:
        fewbit.import_model(tmp_path, context=41)
    assert "trained for 40" in (caught.value.hint or "")
