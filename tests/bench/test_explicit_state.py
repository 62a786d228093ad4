"""Models with a state, for tools that have none."""

from __future__ import annotations

import torch

from fewbit.base.typed_torch import manual_seed
from fewbit.bench.peers.explicit_state import ExplicitState, state_of
from fewbit.models import LlamaDecode


def test_state_goes_in_and_comes_out() -> None:
    manual_seed(0)
    model = LlamaDecode(32, 8, 2, 2, 2, 16, 4).eval()
    given = torch.tensor([[3]]), torch.tensor([1])
    state = state_of(model, given)
    assert len(state) == 4
    assert not any(buffer.any() for name, buffer in model.named_buffers() if name in state)
    with torch.no_grad():
        logits, *new = ExplicitState(model, tuple(state))(*given, *state.values())
        torch.testing.assert_close(logits, model(*given))
    for name, tensor in zip(state, new, strict=True):
        torch.testing.assert_close(tensor, model.get_buffer(name))
        assert not state[name].any()


def test_a_model_without_state() -> None:
    assert state_of(torch.nn.Linear(2, 2), (torch.zeros(1, 2),)) == {}
