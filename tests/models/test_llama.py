"""A LLaMa token by token is the same network as the whole sequence at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.models import LlamaDecode, LlamaTiny

LENGTH = 24
SMALL = {"vocabulary": 128, "width": 32, "depth": 2, "heads": 4, "hidden": 48, "longest": 32}

Networks = tuple[LlamaTiny, LlamaDecode]
"""The whole sequence at once, and one step; with the same weights."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(4, marks=pytest.mark.slow), 2],
    ids=["all-heads", "shared-heads"],
)
def networks(request: pytest.FixtureRequest) -> Networks:
    manual_seed(0)
    whole = LlamaTiny(**SMALL, kv_heads=request.param).eval()
    step = LlamaDecode(**SMALL, kv_heads=request.param).eval()
    step.load_state_dict(whole.state_dict())
    return whole, step


@pytest.fixture(scope="module")
def compiled(networks: Networks) -> fewbit.Artifact:
    return fewbit.compile(networks[1], example_inputs=begin())


def tokens() -> torch.Tensor:
    return torch.randint(128, (1, LENGTH), generator=torch.Generator().manual_seed(1))


def begin() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)


def steps_of(run: Callable[..., Any]) -> np.ndarray[Any, Any]:
    given = tokens()
    logits = [np.asarray(run(given[:, i : i + 1], torch.tensor([i]))) for i in range(LENGTH)]
    return np.concatenate(logits, axis=1)


def test_steps_in_eager(networks: Networks) -> None:
    whole, step = networks
    with torch.no_grad():
        expected = whole(tokens()).numpy()
        found = steps_of(step)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_compiled_steps(networks: Networks, compiled: fewbit.Artifact) -> None:
    with torch.no_grad():
        expected = networks[0](tokens()).numpy()
    for threads in (1, 2):
        session = compiled.session(threads=threads)
        np.testing.assert_allclose(steps_of(session), expected, rtol=1e-4, atol=1e-5)


def test_quantized_steps(networks: Networks) -> None:
    """Scales are of tokens, so a token's integers do not depend on the others."""
    whole, step = networks
    expected = fewbit.compile(whole, recipe="w4a8", example_inputs=(tokens(),))(tokens())
    session = fewbit.compile(step, recipe="w4a8", example_inputs=begin()).session()
    found = steps_of(session)
    assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)


def test_a_text_that_it_writes_itself(networks: Networks, compiled: fewbit.Artifact) -> None:
    """Each token is the likeliest after those before, by the step and by the whole."""
    whole, _ = networks
    session = compiled.session()
    text = [7]
    for position in range(LENGTH):
        logits = session(np.array([[text[-1]]]), np.array([position]))
        with torch.no_grad():
            expected = whole(torch.tensor([text]))[0, -1].numpy()
        np.testing.assert_allclose(logits[0, 0], expected, rtol=1e-4, atol=1e-5)
        text.append(int(logits.argmax()))
    assert len(set(text)) > 2


@pytest.mark.slow
def test_the_model_of_the_zoo() -> None:
    from fewbit.models import create

    step, session = create("llama-15m-decode"), fewbit.compile("zoo:llama-15m-decode").session()
    for position in range(3):
        given = torch.tensor([[1000 * position]]), torch.tensor([position])
        with torch.no_grad():
            expected = step(*given).numpy()
        np.testing.assert_allclose(session(*given), expected, rtol=1e-3, atol=1e-4)
