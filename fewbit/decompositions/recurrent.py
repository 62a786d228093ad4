"""Recurrent layers as loops: LSTM, GRU and RNN of `torch.nn`, by torch's own `scan`.

The matmuls with the inputs of all steps are one layer before the loop; the loop's body is the cell,
with the matmul on the state. Compile time and code do not depend on the number of steps, which may
be dynamic. Sums and products are in the order of torch's own cells, so floats have the same bits as
steps that are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import split

State = list[Tensor]
Cell = Callable[["Weights", Tensor, State], State]
"""The next state, of what the inputs contribute to the gates and the state before."""


@dataclass(frozen=True)
class Weights:
    """The parameters of one layer in one direction."""

    input: Tensor
    state: Tensor
    input_bias: Tensor | None = None
    state_bias: Tensor | None = None
    projection: Tensor | None = None

    @staticmethod
    def of(parameters: Sequence[Tensor], has_biases: bool) -> Weights:
        first, second, *others = parameters
        biases = others[:2] if has_biases else [None, None]
        return Weights(first, second, *biases, *others[2 if has_biases else 0 :])

    def tensors(self) -> tuple[Tensor, ...]:
        """Those that a cell reads."""
        each = (self.state, self.state_bias, self.projection)
        return tuple(tensor for tensor in each if tensor is not None)

    def within(self, tensors: Sequence[Tensor]) -> Weights:
        """Return what a cell reads, as the operands of the loop's body."""
        given = iter(tensors)
        state = next(given)
        bias = None if self.state_bias is None else next(given)
        projection = None if self.projection is None else next(given)
        return Weights(self.input, state, None, bias, projection)


def scan_steps(
    step: Callable[..., Sequence[Tensor]],
    state: Sequence[Tensor],
    steps: Sequence[Tensor],
    others: Sequence[Tensor],
) -> list[Tensor]:
    """Return the last state and the outputs of all steps.

    `step` takes the state, an element of each of `steps` along its first axis, and the others; it
    gives the state and an output.
    """
    loop = cast(Any, torch.ops.higher_order).scan
    return list(loop(step, list(state), list(steps), tuple(others)))


def _run(
    x: Tensor,
    weights: Weights,
    state: State,
    cell: Cell,
    reverse: bool,
    lengths: Tensor | None,
) -> tuple[Tensor, State]:
    """Return the outputs of all steps, and the last state."""
    gates = F.linear(x, weights.input, weights.input_bias)
    steps = [gates] if lengths is None else [gates, torch.arange(x.shape[0])]
    steps = [each.flip(0) for each in steps] if reverse else steps
    count = len(state)

    def step(*tensors: Tensor) -> list[Tensor]:
        inner = weights.within(tensors[count + 1 :])
        after = cell(inner, tensors[count], list(tensors[:count]))
        return [*after, after[0].clone()]

    def step_of_some(*tensors: Tensor) -> list[Tensor]:
        """Leave samples alone whose sequences are shorter; their outputs are 0."""
        *others, ends = tensors[count + 2 :]
        *after, output = step(*tensors[: count + 1], *others)
        runs = (ends > tensors[count + 1]).unsqueeze(1)
        kept = [torch.where(runs, a, b) for a, b in zip(after, tensors, strict=False)]
        return [*kept, torch.where(runs, output, torch.zeros_like(output))]

    if lengths is None:
        *last, outputs = scan_steps(step, state, steps, weights.tensors())
    else:
        *last, outputs = scan_steps(step_of_some, state, steps, [*weights.tensors(), lengths])
    return (outputs.flip(0) if reverse else outputs), last


def _lstm_cell(weights: Weights, gates: Tensor, state: State) -> State:
    h, c = state
    total = F.linear(h, weights.state, weights.state_bias) + gates
    i, forget, new, out = split(total, c.shape[-1], 1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(i) * torch.tanh(new)
    h = torch.sigmoid(out) * torch.tanh(c)
    return [h if weights.projection is None else F.linear(h, weights.projection), c]


def _gru_cell(weights: Weights, gates: Tensor, state: State) -> State:
    (h,) = state
    of_input = split(gates, h.shape[-1], 1)
    of_state = split(F.linear(h, weights.state, weights.state_bias), h.shape[-1], 1)
    reset = torch.sigmoid(of_state[0] + of_input[0])
    keep = torch.sigmoid(of_state[1] + of_input[1])
    new = torch.tanh(of_input[2] + of_state[2] * reset)
    return [(h - new) * keep + new]


def _rnn_cell(activation: Callable[[Tensor], Tensor]) -> Cell:
    def cell(weights: Weights, gates: Tensor, state: State) -> State:
        return [activation(F.linear(state[0], weights.state, weights.state_bias) + gates)]

    return cell


def run_layers(
    cell: Cell,
    x: Tensor,
    initial: Sequence[Tensor],
    parameters: Sequence[Tensor],
    has_biases: bool,
    count: int,
    bidirectional: bool,
    batch_first: bool,
    lengths: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Return the outputs of the last layer, and the last states of all; `lengths` end sequences."""
    x = x.transpose(0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    each = len(parameters) // (count * directions)
    last: list[State] = []
    for layer in range(count):
        outputs: list[Tensor] = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = Weights.of(parameters[number * each : (number + 1) * each], has_biases)
            state = [tensor[number] for tensor in initial]
            y, end = _run(x, weights, state, cell, direction == 1, lengths)
            outputs.append(y)
            last.append(end)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
    ends = [torch.stack(list(tensors), 0) for tensors in zip(*last, strict=True)]
    return (x.transpose(0, 1) if batch_first else x), *ends


def _op(cell: Cell) -> Callable[..., tuple[Tensor, ...]]:
    """Return what computes `aten.lstm.input` and its like; the state of most is one tensor."""

    def run(
        x: Tensor,
        hx: Tensor | Sequence[Tensor],
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        states = [hx] if isinstance(hx, Tensor) else hx
        return run_layers(
            cell, x, states, params, has_biases, num_layers, bidirectional, batch_first
        )  # fmt: skip

    return run


CELLS: dict[str, Cell] = {
    "LSTM": _lstm_cell,
    "GRU": _gru_cell,
    "RNN_TANH": _rnn_cell(torch.tanh),
    "RNN_RELU": _rnn_cell(torch.relu),
}
"""The cells, by what modules call their modes."""

lstm = _op(CELLS["LSTM"])
gru = _op(CELLS["GRU"])
rnn_tanh = _op(CELLS["RNN_TANH"])
rnn_relu = _op(CELLS["RNN_RELU"])


def recurrent_decompositions() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    return {
        aten.lstm.input: lstm,
        aten.gru.input: gru,
        aten.rnn_tanh.input: rnn_tanh,
        aten.rnn_relu.input: rnn_relu,
    }


def recurrent_functions() -> dict[Any, Callable[..., Any]]:
    """The same by the functions that modules call; packed sequences are none of theirs."""
    functions = cast(Any, torch)

    def unless_packed(whole: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*args: Any, **kwargs: Any) -> Any:
            packed = not isinstance(args[2], list | tuple)
            return (whole if packed else run)(*args, **kwargs)

        return chosen

    own = {"lstm": lstm, "gru": gru, "rnn_tanh": rnn_tanh, "rnn_relu": rnn_relu}
    return {getattr(functions, n): unless_packed(getattr(functions, n), f) for n, f in own.items()}
