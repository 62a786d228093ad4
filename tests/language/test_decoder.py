# pyright: basic
"""The decoder of each family, compared with one in numpy that is written from its description."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fewbit.frontends.language import build_decoder, open_checkpoint
from tests.language.checkpoints import SETTINGS, VOCABULARY, family_folder, settings_of
from tests.language.reference import logits

CONTEXT = 32


@pytest.mark.parametrize("family", SETTINGS)
def test_a_family_computes_what_it_describes(family: str, tmp_path: Path) -> None:
    tensors = family_folder(tmp_path, family)
    model = build_decoder(open_checkpoint(tmp_path), CONTEXT)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, 18)
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    with torch.no_grad():
        for begin, end in ((0, 11), (11, 12), (12, 18)):
            given = torch.tensor(tokens[None, begin:end])
            ours = model(given, torch.tensor([begin])).numpy()
            expected = logits(family, settings_of(family), wide, tokens[:end])
            np.testing.assert_allclose(ours[0, 0], expected, rtol=2e-5, atol=2e-5)


def test_layers_are_called_as_in_checkpoints(tmp_path: Path) -> None:
    family_folder(tmp_path, "gpt2")
    model = build_decoder(open_checkpoint(tmp_path), CONTEXT)
    names = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    assert "model.layers.1.self_attn.q_proj" in names
    assert "model.layers.1.mlp.down_proj" in names


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])
def test_only_what_was_kept_is_read(family: str, tmp_path: Path) -> None:
    """Behind the last token, and before the window, there may be anything, numbers or not."""
    family_folder(tmp_path, family)
    model = build_decoder(open_checkpoint(tmp_path), CONTEXT)
    caches = [buffer for name, buffer in model.named_buffers() if name.endswith(("keys", "values"))]
    window = SETTINGS[family].get("sliding_window", CONTEXT)
    for cache in caches:
        cache.fill_(float("nan"))
    with torch.no_grad():
        for begin, end in ((0, 11), (11, 12), (12, 18)):
            tokens = torch.arange(begin, end).unsqueeze(0)
            assert model(tokens, torch.tensor([begin])).isfinite().all()
        if family == "mistral":
            before = 18 - window + 1
            for cache in caches:
                tokens = cache[:, :, 0, :, :before] if cache.ndim == 5 else cache[:, :, :before]
                tokens.fill_(float("nan"))
            assert model(torch.tensor([[1]]), torch.tensor([18])).isfinite().all()
