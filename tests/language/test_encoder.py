"""The encoder of each family, compared with one in numpy that is written from its description."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fewbit.frontends.language import build_encoder, open_encoder
from fewbit.language.config import Buckets
from fewbit.language.encoder import TextEncoder, bucket_table
from tests.language.encoder_checkpoints import (
    SETTINGS,
    VOCABULARY,
    encoder_settings,
    write_encoder,
)
from tests.language.encoder_reference import bucket, states

TOKENS = np.random.default_rng(0).integers(4, VOCABULARY, 20)


@pytest.mark.parametrize("case", SETTINGS)
def test_states_are_those_of_the_description(case: str, tmp_path: Path) -> None:
    weights = write_encoder(tmp_path, case)
    model = build_encoder(open_encoder(tmp_path), 32)
    with torch.no_grad():
        found = model(torch.tensor(TOKENS[None]))[0].numpy()
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    expected = states(encoder_settings(case), wide, TOKENS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("count", "far"), [(32, 128), (8, 12)])
def test_buckets_of_relative_positions(count: int, far: int) -> None:
    table = bucket_table(Buckets(count, far), 200).numpy()
    assert table.tolist() == [bucket(relative, count, far) for relative in range(-199, 200)]


def test_states_become_one_vector(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert")
    model = build_encoder(open_encoder(tmp_path), 32)
    tokens = torch.tensor(TOKENS[None])

    def pooled(**changes: object) -> np.ndarray:
        other = TextEncoder(replace(model.config, **changes))  # pyright: ignore[reportArgumentType]
        other.load_state_dict(model.state_dict())
        return other(tokens).numpy()

    with torch.no_grad():
        all_states = model(tokens).numpy()
        mean = all_states.mean(1)
        np.testing.assert_allclose(pooled(pooling="mean"), mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            pooled(pooling="mean", normalize=True),
            mean / np.linalg.norm(mean),
            rtol=1e-5,
            atol=1e-6,
        )
        np.testing.assert_array_equal(pooled(pooling="cls"), all_states[:, 0])
        np.testing.assert_array_equal(pooled(pooling="max"), all_states.max(1))
