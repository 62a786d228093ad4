"""Language models of each family, compiled and compared with PyTorch and the interpreter."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import fewbit
from fewbit.errors import FewbitWarning
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.program.state import initial_state
from tests.language.checkpoints import SETTINGS, VOCABULARY, family_folder, write_gguf

CONTEXT = 24
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY, (1, 12))
PARTS = ((0, 7), (7, 8), (8, 9), (9, 12))
"""A prompt, two steps, and several tokens behind what is kept."""


@pytest.mark.slow
@pytest.mark.parametrize("family", SETTINGS)
def test_a_family_compiles_to_what_its_module_computes(family: str, tmp_path: Path) -> None:
    family_folder(tmp_path, family)
    with pytest.warns(FewbitWarning, match="takes tokens, and no text"):
        step = fewbit.compile(str(tmp_path), context=CONTEXT).session()
    model = build_decoder(open_checkpoint(tmp_path), CONTEXT)
    for begin, end in PARTS:
        with torch.no_grad():
            expected = model(torch.tensor(TOKENS[:, begin:end]), torch.tensor([begin])).numpy()
        result = step(TOKENS[:, begin:end], np.array([begin]))
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["w8a8", "w4a8g32"])
def test_few_bits_are_those_of_the_interpreter(recipe: str, tmp_path: Path) -> None:
    family_folder(tmp_path, "qwen3")
    with pytest.warns(FewbitWarning):
        program = fewbit.quantize(fewbit.import_model(tmp_path, context=CONTEXT), recipe)
    step = fewbit.compile(program).session()
    state = list(initial_state(program.module, program.store).values())
    for begin, end in PARTS:
        given = TOKENS[:, begin:end], np.array([begin])
        expected, *state = program.run(*given, *state)
        np.testing.assert_allclose(step(*given), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0"])
def test_a_file_keeps_its_integers(kind: str, tmp_path: Path) -> None:
    """The program has the file's own weights, and the compiled one gives its results."""
    path = tmp_path / "net.gguf"
    write_gguf(path, gguf.GGMLQuantizationType[kind], depth=2, tied=True)
    plain = fewbit.import_model(path, context=CONTEXT)
    program = fewbit.quantize(plain, "wfpa8")
    scheme = {"Q4_0": "w4a8g32", "Q4_1": "w4a8g32-offset", "Q8_0": "w8a8g32"}[kind]
    assert program.recipe == scheme
    weights_alone = fewbit.quantize(plain, "fp", weights=plain.own_weights)
    state = list(initial_state(program.module, program.store).values())
    first = TOKENS[:, :7], np.array([0])
    np.testing.assert_array_equal(
        weights_alone.run(*first, *state)[0], plain.run(*first, *state)[0]
    )
    step = fewbit.compile(program).session()
    for begin, end in PARTS:
        given = TOKENS[:, begin:end], np.array([begin])
        expected, *state = program.run(*given, *state)
        np.testing.assert_allclose(step(*given), expected, rtol=1e-5, atol=1e-5)
