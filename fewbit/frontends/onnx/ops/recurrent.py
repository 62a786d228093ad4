"""RNN, GRU and LSTM as loops, whose number of steps may be dynamic.

The matmuls with inputs of all steps are one layer, `NAME.input`, those with the state another,
`NAME.state`, in the body of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import split
from fewbit.decompositions.recurrent import scan_steps
from fewbit.frontends.onnx.layers import WEIGHT, layer_name
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Size, outside_trace

Activation = Callable[[Tensor], Tensor]


def _activation(call: Call, name: str, alpha: float | None, beta: float | None) -> Activation:
    def given(value: float | None, default: float) -> float:
        return default if value is None else value

    plain: dict[str, Activation] = {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softsign": lambda x: x / (1 + torch.abs(x)),
        "softplus": lambda x: torch.log1p(torch.exp(x)),
        "affine": lambda x: given(alpha, 1.0) * x + given(beta, 0.0),
        "leakyrelu": lambda x: torch.where(x < 0, given(alpha, 0.01) * x, x),
        "thresholdedrelu": lambda x: torch.where(x > given(alpha, 1.0), x, torch.zeros_like(x)),
        "scaledtanh": lambda x: given(alpha, 1.0) * torch.tanh(given(beta, 1.0) * x),
        "hardsigmoid": lambda x: torch.clamp(given(alpha, 0.2) * x + given(beta, 0.5), 0, 1),
        "elu": lambda x: torch.where(x > 0, x, given(alpha, 1.0) * (torch.exp(x) - 1)),
    }
    if name.lower() not in plain:
        raise call.refusal(f"there is no activation '{name}'")
    return plain[name.lower()]


class Recurrence:
    """One op: its directions, each with weights and a state."""

    def __init__(self, call: Call, gates: int, activations: list[str]) -> None:
        self.call = call
        self.gates = gates
        self.hidden = int(_shape(call, 2)[-1])
        self.direction = call.attr("direction", "forward")
        self.count = 2 if self.direction == "bidirectional" else 1
        names = call.attr("activations") or activations * self.count
        alphas = iter(call.attr("activation_alpha", []))
        betas = iter(call.attr("activation_beta", []))
        functions = [_activation(call, n, *_parameters(n, alphas, betas)) for n in names]
        each = len(functions) // self.count
        self.functions = [functions[i * each : (i + 1) * each] for i in range(self.count)]
        self.layout = call.attr("layout", 0)
        self.limit = call.attr("clip")

    def run(self, cell: Callable[..., tuple[Tensor, ...]], states: int) -> tuple[Tensor, ...]:
        call = self.call
        x = call.tensor(0)
        x = x.transpose(0, 1) if self.layout else x
        outputs: list[Tensor] = []
        last: list[list[Tensor]] = [[] for _ in range(states)]
        for d in range(self.count):
            reverse = self.direction == "reverse" or d == 1
            y, ends = self._direction(x, d, reverse, cell, states)
            outputs.append(y)
            for kept, end in zip(last, ends, strict=True):
                kept.append(end)
        whole = torch.stack(outputs, 1)  # steps, directions, batch, hidden
        ends = [torch.stack(kept, 0) for kept in last]
        if self.layout:
            return whole.permute(2, 0, 1, 3), *(end.transpose(0, 1) for end in ends)
        return whole, *ends

    def _direction(
        self, x: Tensor, d: int, reverse: bool, cell: Callable[..., Any], states: int
    ) -> tuple[Tensor, list[Tensor]]:
        call = self.call
        weights = self._weights(d)
        before = F.linear(x, weights.input, weights.input_bias)
        state = [self._initial(5 + i, d, x.shape[1], x) for i in range(states)]
        lengths = call.tensor(4).to(torch.int64).reshape([-1, 1]) if call.has(4) else None
        read = [weights.state, weights.state_bias, weights.peepholes, lengths]

        def step(*tensors: Tensor) -> list[Tensor]:
            now, (gates, number), others = (
                tensors[:states],
                tensors[states : states + 2],
                iter(tensors[states + 2 :]),
            )
            given = [None if tensor is None else next(others) for tensor in read]
            assert given[0] is not None
            inner = Weights(weights.input, given[0], None, given[1], given[2])
            after = list(cell(self, inner, gates, list(now), self.functions[d]))
            out = after[0].clone()
            if given[3] is not None:
                running = given[3] > number
                out = torch.where(running, out, torch.zeros_like(out))
                after = [torch.where(running, a, s) for a, s in zip(after, now, strict=True)]
            return [*after, out]

        steps = [before, torch.arange(x.shape[0])]
        steps = [each.flip(0) for each in steps] if reverse else steps
        operands = [tensor for tensor in read if tensor is not None]
        *last, outputs = run_loop(self.call, step, state, steps, operands)
        return (outputs.flip(0) if reverse else outputs), last

    def _initial(self, index: int, d: int, batch: Any, x: Tensor) -> Tensor:
        if not self.call.has(index):
            return torch.zeros([batch, self.hidden], dtype=x.dtype)
        given = self.call.tensor(index)
        given = given[:, d] if self.layout else given[d]
        if str(given.shape[0]) != str(batch):
            self.call.require_same(given.shape[0], batch)
            given = given.expand([batch, self.hidden])  # The file has two names for one size.
        return given.clone()  # Both states may be one tensor, which a loop does not take.

    def _weights(self, d: int) -> Weights:
        call = self.call
        suffix = "" if self.count == 1 else (".forward", ".reverse")[d]
        bias = call.known(3) if call.has(3) else None
        size = self.gates * self.hidden
        own = _Part(call, d, suffix)
        if call.has(3) and bias is None:
            whole = call.tensor(3)[d]
            biases: list[Tensor | None] = [whole[:size], whole[size:]]
        elif bias is None:
            biases = [None, None]
        else:
            biases = [
                own.constant(3, lambda b: b[:size], "input", ".bias"),
                own.constant(3, lambda b: b[size:], "state", ".bias"),
            ]
        peepholes = call.tensor(7)[d] if call.op == "LSTM" and call.has(7) else None
        return Weights(
            own.constant(1, lambda w: w, "input", WEIGHT),
            own.constant(2, lambda w: w, "state", WEIGHT),
            biases[0],
            biases[1],
            peepholes,
        )

    def clip(self, x: Tensor) -> Tensor:
        return x if self.limit is None else torch.clamp(x, -self.limit, self.limit)


def run_loop(
    call: Call,
    step: Callable[..., Sequence[Tensor]],
    state: Sequence[Tensor],
    steps: Sequence[Tensor],
    others: Sequence[Tensor],
) -> list[Tensor]:
    """A loop in the trace; before it, the shapes of one; of constants, what it computes."""
    if call.evaluator.tracing and not call.folding:
        return scan_steps(step, state, steps, others)
    if not call.folding:
        *last, out = step(*state, *(each[0] for each in steps), *others)
        return [*last, out.unsqueeze(0).expand([steps[0].shape[0], *out.shape])]
    outputs: list[Tensor] = []
    for rows in zip(*steps, strict=True):
        *state, out = step(*state, *rows, *others)
        outputs.append(out)
    return [*state, torch.stack(outputs, 0)]


@dataclass(frozen=True)
class Weights:
    input: Tensor
    state: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None
    peepholes: Tensor | None


class _Part:
    """Constants of one direction."""

    def __init__(self, call: Call, d: int, suffix: str) -> None:
        self.call, self.d, self.suffix = call, d, suffix

    def constant(
        self, index: int, change: Callable[[Tensor], Tensor], part: str, ending: str
    ) -> Tensor:
        call, value = self.call, self.call.inputs[index]
        if call.folding or not isinstance(value, Known):
            return change(call.tensor(index)[self.d])
        weight = call.inputs[1]
        base = layer_name(call, weight if isinstance(weight, Known) else value)
        with outside_trace():
            tensor = change(value.tensor[self.d]).contiguous()
        name = f"{base}{self.suffix}.{part}{ending}"
        return call.evaluator.tensor(Known(tensor, value.kind, name))


def _parameters(name: str, alphas: Any, betas: Any) -> tuple[float | None, float | None]:
    """Only some functions take parameters from the lists."""
    takes_alpha = name.lower() in (
        "affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu",
    )  # fmt: skip
    takes_beta = name.lower() in ("affine", "scaledtanh", "hardsigmoid")
    return (next(alphas, None) if takes_alpha else None, next(betas, None) if takes_beta else None)


def _shape(call: Call, index: int) -> tuple[Size, ...]:
    return call.shape(index) if call.has(index) else ()


@op("RNN", tensors=0)
def rnn(call: Call) -> tuple[Tensor, ...]:
    def cell(
        r: Recurrence, w: Weights, x: Tensor, state: list[Tensor], f: list[Activation]
    ) -> tuple[Tensor, ...]:
        return (f[0](r.clip(x + F.linear(state[0], w.state, w.state_bias))),)

    return Recurrence(call, 1, ["Tanh"]).run(cell, 1)


@op("GRU", tensors=0)
def gru(call: Call) -> tuple[Tensor, ...]:
    before = bool(call.attr("linear_before_reset", 0))

    def cell(
        r: Recurrence, w: Weights, x: Tensor, state: list[Tensor], f: list[Activation]
    ) -> tuple[Tensor, ...]:
        h, n = state[0], r.hidden
        if before:
            hz, hr, hh = split(F.linear(h, w.state, w.state_bias), n, -1)
        else:
            bias = None if w.state_bias is None else w.state_bias[: 2 * n]
            hz, hr = split(F.linear(h, w.state[: 2 * n], bias), n, -1)
            hh = None
        xz, xr, xh = split(x, n, -1)
        z, reset = f[0](r.clip(xz + hz)), f[0](r.clip(xr + hr))
        if hh is None:
            bias = None if w.state_bias is None else w.state_bias[2 * n :]
            hidden = f[1](r.clip(xh + F.linear(reset * h, w.state[2 * n :], bias)))
        else:
            hidden = f[1](r.clip(xh + reset * hh))
        return ((1 - z) * hidden + z * h,)

    return Recurrence(call, 3, ["Sigmoid", "Tanh"]).run(cell, 1)


@op("LSTM", tensors=0)
def lstm(call: Call) -> tuple[Tensor, ...]:
    coupled = bool(call.attr("input_forget", 0))

    def cell(
        r: Recurrence, w: Weights, x: Tensor, state: list[Tensor], f: list[Activation]
    ) -> tuple[Tensor, ...]:
        h, c = state
        i, o, forget, new = split(x + F.linear(h, w.state, w.state_bias), r.hidden, -1)
        peepholes = None if w.peepholes is None else split(w.peepholes, r.hidden, -1)
        if peepholes is not None:
            i, forget = i + peepholes[0] * c, forget + peepholes[2] * c
        i = f[0](r.clip(i))
        forget = 1 - i if coupled else f[0](r.clip(forget))
        c = forget * c + i * f[1](r.clip(new))
        if peepholes is not None:
            o = o + peepholes[1] * c
        return f[0](r.clip(o)) * f[2](c), c

    return Recurrence(call, 4, ["Sigmoid", "Tanh", "Tanh"]).run(cell, 2)
