"""Encoders beside the classes of transformers that they are read for, with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import FewbitWarning
from fewbit.frontends.language import build_encoder, open_encoder
from tests.language.encoder_checkpoints import SETTINGS, VOCABULARY, encoder_settings

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TOKENS = np.random.default_rng(0).integers(4, VOCABULARY, (1, 20))


def save_theirs(case: str, folder: Path) -> Any:
    settings = encoder_settings(case)
    family = settings.pop("model_type")
    manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **settings)
    if family == "t5":
        model = transformers.T5EncoderModel(config)
    else:
        model = transformers.AutoModel.from_config(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("case", SETTINGS)
def test_states_are_those_of_transformers(case: str, tmp_path: Path) -> None:
    model = save_theirs(case, tmp_path)
    ours = build_encoder(open_encoder(tmp_path), 32)
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).last_hidden_state.numpy()
        found = ours(torch.tensor(TOKENS)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.warns(FewbitWarning, match="no text"):
        program = fewbit.import_model(tmp_path)
    np.testing.assert_allclose(program.run(TOKENS)[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fewbit.compile(program)(TOKENS), expected, rtol=1e-5, atol=1e-5)
