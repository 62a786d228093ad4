"""What a run of a model says about its layers, and that the run leaves no trace."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import forward_hooks, forward_pre_hooks
from fewbit.quant.fusion.dataflow import trace
from tests.quant.fusion.networks import LlamaBlock, Residual, ViTBlock, settled

TOKENS = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))


def test_calls_are_in_the_order_of_execution() -> None:
    flow = trace(settled(Residual()), torch.randn(1, 4, 8, 8))
    order = ["conv1", "bn1", "conv2", "bn2", "shortcut.0", "shortcut.1"]
    assert [call.path for call in flow.calls] == order


def test_a_norm_feeds_its_linears_and_not_the_residual() -> None:
    flow = trace(LlamaBlock(), TOKENS)
    (norm,) = (call for call in flow.calls if call.path == "attn_norm")
    assert [user if isinstance(user, str) else user.path for user in norm.users] == ["q", "k", "v"]
    assert not norm.kept


def test_the_output_of_the_model_is_kept() -> None:
    flow = trace(nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 3)), TOKENS)
    assert [call.kept for call in flow.calls] == [False, True]
    assert flow.calls[1].source is flow.calls[0]


def test_garbage_in_cycles_is_not_kept() -> None:
    class Cyclic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            held: list[object] = [y := self.layer(x)]
            held.append(held)
            return y.relu()

    assert [call.kept for call in trace(Cyclic(), TOKENS).calls] == [False]


def test_a_run_changes_neither_buffers_nor_modes_nor_hooks() -> None:
    class Counting(ViTBlock):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.count += 1
            self.count = self.count + 1
            return super().forward(x)

    model = Counting().train()
    model.mlp.eval()
    count = model.count
    trace(model, TOKENS)
    assert model.count is count
    assert count == 0
    assert model.training
    assert not model.mlp.training
    assert not any(forward_hooks(m) or forward_pre_hooks(m) for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


class Checking(nn.Module):
    """Calls no layer; looks at its input, and gives a tensor or a decision."""

    def __init__(self, decides: bool) -> None:
        super().__init__()
        self.decides = decides

    def forward(self, x: Tensor) -> Tensor | bool:
        positive = bool(x.sum() > 0)
        return positive if self.decides else x * positive


class Checked(nn.Module):
    def __init__(self, decides: bool) -> None:
        super().__init__()
        self.check = Checking(decides)
        self.layer = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        checked = self.check(x)
        return self.layer(checked if isinstance(checked, Tensor) else x)


def test_looking_at_values_matters_where_it_can_steer() -> None:
    assert trace(Checked(decides=False), TOKENS).reads_values is None
    assert "check" in (trace(Checked(decides=True), TOKENS).reads_values or "")
