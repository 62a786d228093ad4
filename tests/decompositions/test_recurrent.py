"""Recurrent layers are loops: of any number of steps, with the integers of steps written out."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import scan as torch_scan
from torch.export import Dim
from xdsl.dialects import scf

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.ir.layers import layers

scan: Any = torch_scan


class Outputs(nn.Module):
    """A recurrent layer that gives its outputs and its last states."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, state = self.layer(x)
        states: tuple[Tensor, ...] = cast(Any, state) if isinstance(state, tuple) else (state,)
        return y, *states


LAYERS = {
    "lstm": lambda: nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True),
    "projected lstm": lambda: nn.LSTM(6, 8, proj_size=3),
    "gru": lambda: nn.GRU(6, 8, bias=False, bidirectional=True),
    "rnn": lambda: nn.RNN(6, 8, nonlinearity="relu"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_any_number_of_steps(name: str) -> None:
    manual_seed(0)
    model = Outputs(LAYERS[name]()).eval()
    shapes = ({0: Dim("first"), 1: Dim("second")},)
    program = fewbit.import_model(model, (torch.randn(2, 5, 6),), dynamic_shapes=shapes)
    assert any(isinstance(op, scf.ForOp) for op in program.module.walk())
    for sizes in ((2, 5), (1, 1), (3, 9)):
        x = torch.randn(*sizes, 6)
        for found, expected in zip(program.run(x.numpy()), model(x), strict=True):
            np.testing.assert_allclose(found, expected.detach(), rtol=1e-5, atol=1e-6)


class Unrolled(nn.Module):
    """The same LSTM, step by step."""

    def __init__(self, layer: nn.LSTM) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        linear, weights = nn.functional.linear, cast(Any, self.layer)
        gates = linear(x, weights.weight_ih_l0, weights.bias_ih_l0)
        h = c = torch.zeros(x.shape[1], self.layer.hidden_size)
        outputs: list[Tensor] = []
        for step in range(x.shape[0]):
            total = linear(h, weights.weight_hh_l0, weights.bias_hh_l0) + gates[step]
            i, f, n, o = total.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs)


class First(Outputs):
    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.layer(x)[0]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_integers_of_steps_written_out(threads: int) -> None:
    manual_seed(0)
    lstm = nn.LSTM(12, 16).eval()
    x = torch.randn(4, 2, 12)
    programs = [
        fewbit.quantize(fewbit.import_model(model.eval(), (x,)), "w8a8")
        for model in (First(lstm), Unrolled(lstm))
    ]
    names = ["layer.weight_ih_l0", "layer.weight_hh_l0"]
    assert [sorted(layers(program.module)) for program in programs] == [sorted(names)] * 2
    looped, written_out = (program.run(x.numpy())[0] for program in programs)
    np.testing.assert_array_equal(looped, written_out)
    art = fewbit.compile(programs[0], name="net")
    np.testing.assert_allclose(art(x.numpy(), threads=threads), looped, rtol=1e-5, atol=1e-6)


def test_code_does_not_grow_with_the_steps() -> None:
    model = First(nn.GRU(4, 4)).eval()
    short, long = (
        sum(1 for _ in fewbit.import_model(model, (torch.randn(steps, 1, 4),)).module.walk())
        for steps in (3, 300)
    )
    assert short == long


class ByScan(nn.Module):
    """A cell in a loop of the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(5, 6)

    def forward(self, x: Tensor) -> Tensor:
        def step(h: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            h = self.cell(row, h)
            return h, h.clone()

        return scan(step, torch.zeros(x.shape[1], 6), x)[1]


def test_a_cell_in_a_scan() -> None:
    manual_seed(0)
    model, x = ByScan().eval(), torch.randn(7, 2, 5)
    program = fewbit.import_model(model, (x,))
    assert sorted(layers(program.module)) == ["cell.weight_hh", "cell.weight_ih"]
    h = torch.zeros(2, 6)
    outputs = [h := model.cell(row, h) for row in x]
    expected = torch.stack(outputs).detach().numpy()
    result = fewbit.compile(program, name="net")(x.numpy())
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
