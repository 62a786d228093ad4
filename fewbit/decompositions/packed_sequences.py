"""Packed sequences, while torch traces, as padded ones and their lengths.

What `pack_padded_sequence` gives has as many rows as the sequences have steps together, which no
shape could say before the program runs. So it stays padded, steps first, and recurrent layers are
loops over all steps that leave the state of a sequence alone beyond its end. To the model a packed
sequence is what it was, but for its data, which it must not look at.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from fewbit.decompositions.recurrent import CELLS, run_layers
from fewbit.errors import OpenSizesWarning, UnsupportedError

_LAYERS: tuple[Any, ...] = (nn.LSTM, nn.GRU, nn.RNN)


@dataclass
class _Trace:
    lengths: dict[int, tuple[Tensor, Tensor]] = field(
        default_factory=dict[int, tuple[Tensor, Tensor]]
    )
    """By the id of a tensor that stands for the batch sizes of a packed sequence: its lengths."""
    leaves_steps_open: bool = False
    """Whether sequences are padded to the longest of them, which no shape could say."""


_trace: ContextVar[_Trace] = ContextVar("trace")


@contextmanager
def packed_as_padded() -> Generator[None]:
    """Let modules and functions of torch work on sequences that only claim to be packed."""
    trace = _Trace()
    token = _trace.set(trace)
    own = {layer: layer.forward for layer in _LAYERS}
    packed = cast(Any, rnn.PackedSequence)
    for layer, forward in own.items():
        layer.forward = _forward(forward)
    for i, name in enumerate(("data", "batch_sizes")):
        setattr(packed, name, property(_reader(i)))
    try:
        yield
    finally:
        for layer, forward in own.items():
            layer.forward = forward
        for name in ("data", "batch_sizes"):
            delattr(packed, name)
        _trace.reset(token)
    if trace.leaves_steps_open:
        warnings.warn(
            "pad_packed_sequence gives as many steps as were packed, not those of the longest "
            "sequence; give it total_length to say so",
            OpenSizesWarning,
            stacklevel=2,
        )


def _reader(index: int) -> Callable[[Any], Any]:
    def read(sequence: Any) -> Any:
        values = cast("tuple[Any, ...]", sequence)
        trace, reader = _trace.get(), cast(Any, sys)._getframe(1)
        if reader.f_code is rnn.pad_packed_sequence.__code__:
            trace.leaves_steps_open |= reader.f_locals.get("total_length") is None
        if reader.f_globals.get("__name__") == rnn.__name__ or id(values[1]) not in trace.lengths:
            return values[index]
        raise UnsupportedError(
            "the model reads the data of a packed sequence, whose size depends on the lengths",
            hint="compute on padded sequences, before packing or after pad_packed_sequence",
        )

    return read


def pack(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Return the padded sequences, steps first, and how many of them run at each step."""
    x = x.transpose(0, 1) if batch_first else x
    sizes = _running(x, lengths).sum(1)
    _trace.get().lengths[id(sizes)] = sizes, lengths
    return x, sizes


def pad(
    x: Tensor, sizes: Tensor, batch_first: bool, value: float, count: Any
) -> tuple[Tensor, Tensor]:
    """Return the sequences with this value beyond their ends, and the lengths."""
    lengths = _trace.get().lengths[id(sizes)][1]
    runs = _running(x, lengths).reshape([*x.shape[:2], *([1] * (x.ndim - 2))])
    x = torch.where(runs, x, torch.full_like(x, value))
    missing = count - x.shape[0]
    if missing != 0:
        x = torch.cat([x, x.new_full([missing, *x.shape[1:]], value)])
    return (x.transpose(0, 1) if batch_first else x), lengths


def _running(x: Tensor, lengths: Tensor) -> Tensor:
    """Return whether a sequence has a step: steps x sequences."""
    return lengths.unsqueeze(0) > torch.arange(x.shape[0]).unsqueeze(1)


def packed_functions() -> dict[Any, Callable[..., Any]]:
    """Return those that take and give padded sequences, by torch's functions."""
    functions = cast(Any, torch)
    return {
        functions._pack_padded_sequence: pack,
        functions._pad_packed_sequence: pad,
    }


def _forward(own: Callable[..., Any]) -> Callable[..., Any]:
    def forward(layer: Any, input: Any, hx: Any = None) -> Any:
        if not isinstance(input, rnn.PackedSequence):
            return own(layer, input, hx)
        data, sizes, order, back = cast("tuple[Any, ...]", input)
        lengths = _trace.get().lengths[id(sizes)][1]
        given = _initial(layer, data) if hx is None else layer.permute_hidden(hx, order)
        initial = [given] if isinstance(given, Tensor) else list(given)
        weights = [getattr(layer, name) for name in layer._flat_weights_names]
        outputs, *states = run_layers(
            CELLS[layer.mode], data, initial, weights, layer.bias,
            layer.num_layers, layer.bidirectional, False, lengths,
        )  # fmt: skip
        state = tuple(states) if layer.mode == "LSTM" else states[0]
        return rnn.PackedSequence(outputs, sizes, order, back), layer.permute_hidden(state, back)

    return forward


def _initial(layer: Any, data: Tensor) -> list[Tensor]:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    widths = [layer.proj_size or layer.hidden_size]
    widths += [layer.hidden_size] if layer.mode == "LSTM" else []
    return [torch.zeros([count, data.shape[1], width], dtype=data.dtype) for width in widths]
