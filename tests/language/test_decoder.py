"""The decoder of each family, compared with one in numpy that is written from its description."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import named_modules
from fewbit.errors import FewbitWarning, UsageError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language.config import Decoding
from tests.language.checkpoints import (
    SETTINGS,
    VOCABULARY,
    empty_caches,
    family_folder,
    settings_of,
)
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
    names = {name for name, module in named_modules(model) if isinstance(module, torch.nn.Linear)}
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


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_a_cache_of_f16_has_half_the_bytes_and_nearly_the_logits(
    family: str, tmp_path: Path
) -> None:
    """Compiled, interpreted, and both beside a cache of float32; read at once, and in steps."""
    family_folder(tmp_path, family)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (1, 20))
    with pytest.warns(FewbitWarning):
        exact, half = (
            fewbit.import_model(tmp_path, context=CONTEXT, cache=kind) for kind in ("f32", "f16")
        )
    narrow, wide = empty_caches(half), empty_caches(exact)
    assert sum(each.nbytes for each in narrow) * 2 == sum(each.nbytes for each in wide)
    begin = np.array([0])
    expected, *_ = exact.run(tokens, begin, *wide)
    found, *_ = half.run(tokens, begin, *narrow)
    largest = np.abs(expected).max()
    assert 0 < np.abs(found - expected).max() < 2e-3 * largest
    session = fewbit.compile(half).session()
    steps = [session(tokens[:, :15], begin)]
    for position in range(15, 20):
        steps.append(session(tokens[:, position : position + 1], np.array([position])))
    np.testing.assert_allclose(steps[-1], found, atol=1e-3 * largest)


def test_a_recipe_makes_the_cache_f16_and_others_are_refused(tmp_path: Path) -> None:
    family_folder(tmp_path, "llama")

    def cache_elements(**given: Any) -> set[str]:
        with pytest.warns(FewbitWarning):
            art = fewbit.compile(tmp_path, context=CONTEXT, **given)
        return {spec.element for spec in art.manifest.inputs if "keys" in spec.name}

    assert cache_elements(recipe="w8a8") == {"f16"}
    assert cache_elements() == {"f32"}
    assert cache_elements(recipe="w8a8", cache="f32") == {"f32"}
    with pytest.raises(UsageError, match="not kept as 'f8'"):
        fewbit.import_model(tmp_path, context=CONTEXT, cache=cast(Any, "f8"))


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])
def test_a_step_of_fixed_sizes_gives_the_same_logits(family: str, tmp_path: Path) -> None:
    family_folder(tmp_path, family)
    checkpoint = open_checkpoint(tmp_path)
    whole, steps = build_decoder(checkpoint, CONTEXT), build_decoder(checkpoint, CONTEXT)
    steps.allocate(Decoding(CONTEXT, steps=True))
    tokens = torch.tensor(np.random.default_rng(1).integers(0, VOCABULARY, (1, 12)))
    with torch.no_grad():
        for position in range(12):
            given = tokens[:, position : position + 1], torch.tensor([position])
            torch.testing.assert_close(steps(*given), whole(*given), rtol=1e-5, atol=1e-5)
