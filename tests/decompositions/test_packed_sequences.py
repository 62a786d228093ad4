"""Packed sequences are loops over padded ones, and give what PyTorch gives."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from xdsl.dialects import scf

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import OpenSizesWarning, UnsupportedError
from fewbit.ir.layers import layers


class Packed(nn.Module):
    """A recurrent layer that sees each sequence up to its own end."""

    def __init__(self, layer: nn.Module, is_sorted: bool = False, total: bool = True) -> None:
        super().__init__()
        self.layer, self.is_sorted, self.total = layer, is_sorted, total

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.is_sorted)
        y, state = self.layer(packed)
        total = x.shape[1] if self.total else None
        y, ends = pad_packed_sequence(y, batch_first=True, padding_value=2.5, total_length=total)
        states: tuple[Tensor, ...] = cast(Any, state) if isinstance(state, tuple) else (state,)
        return y, ends, *states


LAYERS = {
    "lstm": lambda: nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True),
    "projected lstm": lambda: nn.LSTM(6, 8, proj_size=3, batch_first=True),
    "gru": lambda: nn.GRU(6, 8, bias=False, bidirectional=True),
    "rnn": lambda: nn.RNN(6, 8, nonlinearity="relu"),
}


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_sequences_of_different_lengths(name: str, is_sorted: bool) -> None:
    manual_seed(0)
    model = Packed(LAYERS[name](), is_sorted).eval()
    program = fewbit.import_model(model, (torch.randn(3, 5, 6), torch.tensor([5, 3, 2])))
    art = fewbit.compile(program, name="net")
    for lengths in ([5, 3, 2], [4, 4, 1], [2, 5, 3]):
        if is_sorted and lengths != sorted(lengths, reverse=True):
            continue
        x, ends = torch.randn(3, 5, 6), torch.tensor(lengths)
        given = x.numpy(), ends.numpy()
        for results in (program.run(*given), art.run(*given)):
            for found, expected in zip(results, model(x, ends), strict=True):
                np.testing.assert_allclose(found, expected.detach(), rtol=1e-5, atol=1e-6)


def test_any_number_of_steps_and_samples() -> None:
    manual_seed(0)
    model = Packed(nn.LSTM(6, 8, batch_first=True)).eval()
    batch = Dim("batch")
    shapes = ({0: batch, 1: Dim("steps")}, {0: batch})
    example = torch.randn(3, 5, 6), torch.tensor([5, 3, 2])
    program = fewbit.import_model(model, example, dynamic_shapes=shapes)
    for size, steps in ((3, 5), (1, 1), (4, 9)):
        x, lengths = torch.randn(size, steps, 6), torch.randint(1, steps + 1, (size,))
        results = program.run(x.numpy(), lengths.numpy())
        for each, expected in zip(results, model(x, lengths), strict=True):
            np.testing.assert_allclose(each, expected.detach(), rtol=1e-5, atol=1e-6)


def test_layers_are_quantized_and_code_does_not_grow() -> None:
    model = Packed(nn.GRU(4, 4, batch_first=True)).eval()
    counts: list[int] = []
    for steps in (3, 300):
        example = torch.randn(2, steps, 4), torch.tensor([steps, 2])
        program = fewbit.import_model(model, example)
        assert sum(isinstance(op, scf.ForOp) for op in program.module.walk()) == 1
        counts.append(sum(1 for _ in program.module.walk()))
        assert sorted(layers(program.module)) == ["layer.weight_hh_l0", "layer.weight_ih_l0"]
    assert counts[0] == counts[1]


def test_the_steps_of_the_longest_sequence_are_not_known() -> None:
    model = Packed(nn.GRU(4, 4, batch_first=True), total=False).eval()
    example = torch.randn(2, 3, 4), torch.tensor([3, 2])
    with pytest.warns(OpenSizesWarning, match="total_length"):
        program = fewbit.import_model(model, example)
    shorter = torch.tensor([2, 1])
    result = program.run(example[0].numpy(), shorter.numpy())[0]
    expected = model(example[0], shorter)[0].detach().numpy()
    np.testing.assert_allclose(result[:, :2], expected, rtol=1e-5, atol=1e-6)
    assert (result[:, 2:] == 2.5).all()


class Reading(nn.Module):
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return pack_padded_sequence(x, lengths, enforce_sorted=False).data.mean(0)


def test_their_data_is_not_read() -> None:
    example = torch.randn(3, 2, 4), torch.tensor([3, 2])
    with pytest.raises(UnsupportedError, match="data of a packed sequence") as caught:
        fewbit.import_model(Reading(), example)
    assert "pad_packed_sequence" in (caught.value.hint or "")


def test_torch_is_as_before_after_a_trace() -> None:
    forward = nn.LSTM.forward
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fewbit.import_model(
            Packed(nn.LSTM(4, 4, batch_first=True)).eval(),
            (torch.randn(2, 3, 4), torch.tensor([3, 2])),
        )
    assert nn.LSTM.forward is forward
    assert "data" not in vars(PackedSequence)
    packed = pack_padded_sequence(torch.randn(3, 2, 4), torch.tensor([3, 2]))
    assert packed.data.shape == (5, 4)
