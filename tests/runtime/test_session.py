"""Programs with a state, called step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.errors import ShapeError, UsageError
from fewbit.runtime import Artifact


class Remembers(nn.Module):
    """A total that starts from 5, and the latest inputs at places that the caller names."""

    total: torch.Tensor
    latest: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((3,), 5.0))
        self.register_buffer("latest", torch.zeros(4, 3))

    def forward(self, x: torch.Tensor, place: torch.Tensor):
        before = self.total.clone()
        self.total.add_(x)
        self.latest.index_copy_(0, place, x.unsqueeze(0))
        return before, self.latest.sum(0)


class Swaps(nn.Module):
    """Two states that take each other's place."""

    a: torch.Tensor
    b: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.arange(4.0))
        self.register_buffer("b", -torch.arange(4.0))

    def forward(self, x: torch.Tensor):
        a = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(a)
        return x + self.a


def given(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(3, generator=generator), torch.tensor([step % 4])


@pytest.fixture(scope="module")
def remembers() -> Artifact:
    return fewbit.compile(Remembers(), example_inputs=given(0))


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_are_those_of_eager(remembers: Artifact, threads: int) -> None:
    session, eager = remembers.session(threads=threads), Remembers()
    for step in range(7):
        for got, wanted in zip(session(*given(step)), eager(*given(step)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-6)
    state = {name.removeprefix("b_"): array for name, array in session.state.items()}
    np.testing.assert_array_equal(state["latest"], eager.latest.numpy())
    np.testing.assert_allclose(state["total"], eager.total.numpy(), rtol=1e-6)


def test_sessions_are_apart_and_begin_anew(remembers: Artifact) -> None:
    first, second = remembers.session(), remembers.session()
    once = first.run(*given(1))
    first.run(*given(2))
    for got, wanted in zip(second.run(*given(1)), once, strict=True):
        np.testing.assert_array_equal(got, wanted)
    first.reset()
    for got, wanted in zip(first.run(*given(1)), once, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_state_may_be_given_and_is_then_left_alone(remembers: Artifact) -> None:
    x, place = (tensor.numpy() for tensor in given(1))
    total, latest = np.ones(3, np.float32), np.full((4, 3), 2, np.float32)
    before, _, new_total, new_latest = remembers.run(x, place, total, latest)
    np.testing.assert_array_equal(before, [1, 1, 1])
    np.testing.assert_array_equal(new_total, x + 1)
    assert (total == 1).all()
    assert (latest == 2).all()
    assert (new_latest[1] == x).all()
    assert (new_latest[0] == 2).all()


def test_state_that_is_given_can_be_updated_in_place(remembers: Artifact) -> None:
    x, place = (tensor.numpy() for tensor in given(1))
    total, latest = np.ones(3, np.float32), np.full((4, 3), 2, np.float32)
    call = remembers.runner.prepare(x, place, total, latest, in_place=True)
    call.run()
    call.run()
    np.testing.assert_allclose(total, x + x + 1, rtol=1e-6)
    assert (latest[1] == x).all()
    assert len(call.own_outputs) == 2


def test_states_that_are_swapped() -> None:
    session, eager = fewbit.compile(Swaps(), example_inputs=(torch.zeros(4),)).session(), Swaps()
    for _ in range(3):
        np.testing.assert_array_equal(session(torch.ones(4)), eager(torch.ones(4)).numpy())


def test_inputs_are_checked(remembers: Artifact) -> None:
    with pytest.raises(ShapeError, match="'x' is 4"):
        remembers.session()(np.zeros(4, np.float32), np.zeros(1, np.int64))


def test_a_program_without_state_has_no_session() -> None:
    art = fewbit.compile(nn.Linear(3, 2), example_inputs=(torch.zeros(1, 3),))
    with pytest.raises(UsageError, match="has no state"):
        art.session()


def test_a_loaded_artifact_begins_where_the_model_did(tmp_path: Path, remembers: Artifact) -> None:
    program = fewbit.import_model(Remembers(), given(0))
    program.save(tmp_path / "program")
    again = fewbit.compile(fewbit.Program.load(tmp_path / "program"), output=tmp_path / "remembers")
    loaded = fewbit.load(again.folder)
    before, _ = loaded.session()(*given(0))
    np.testing.assert_array_equal(before, [5, 5, 5])
