"""w8a8 in PyTorch, computed from the formulas of docs/numerics.md and from nothing of fewbit.

It works below modules and functions, on the ops that PyTorch runs: a matmul, convolution or lookup
one of whose operands depends on parameters alone is a layer, however the model spells it. Its
weight gets one scale for each output channel, its activations one for each row (convolutions: for
each sample), and both are rounded to 8 bits. The names of the parameters behind each weight are
kept, so that a check can ask what became of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)
from torch.utils._pytree import tree_leaves

EPS = 1e-5
LARGEST = 127
aten = torch.ops.aten


def quantize_dequantize(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Round to 8 bits, with one scale for all elements along these dimensions."""
    largest = x.abs().amax(dim=list(dims), keepdim=True).clamp(min=EPS)
    scale = torch.full_like(largest, LARGEST) / largest
    return (x * scale).round().clamp(-LARGEST - 1, LARGEST) / scale


class FakeQuantization(TorchDispatchMode):
    """Rounds the layers of what runs under it; `names` are the parameters that they multiply by."""

    def __init__(self, parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.names: set[str] = set()
        self._origins: dict[int, tuple[torch.Tensor, frozenset[str]]] = {}
        self._written: set[int] = set()
        for name, tensor in parameters.items():
            self._origins[id(tensor)] = (tensor, frozenset([name]))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = _tensors((args, kwargs))
        round_layer = LAYERS.get(func)
        with _disable_current_modes():
            if round_layer is None:
                result = func(*args, **(kwargs or {}))
            else:
                result = func(*round_layer(self, args), **(kwargs or {}))
        self._follow(func, given, result)
        return result

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor depends on parameters alone."""
        known = id(tensor) in self._origins
        return known and tensor.untyped_storage()._cdata not in self._written  # pyright: ignore[reportPrivateUsage]

    def note(self, weight: torch.Tensor) -> None:
        """Remember the parameters of a weight by which something computed is multiplied."""
        self.names |= self._origins[id(weight)][1]

    def _follow(self, func: Any, given: list[torch.Tensor], result: Any) -> None:
        results = _tensors(result)
        constant = all(self.is_constant(tensor) for tensor in given)
        if func._schema.is_mutable and not constant:
            for tensor in results:
                self._written.add(tensor.untyped_storage()._cdata)  # pyright: ignore[reportPrivateUsage]
        if not constant or func in RANDOM:
            return
        names = frozenset[str]().union(*(self._origins[id(tensor)][1] for tensor in given))
        for tensor in results:
            self._origins[id(tensor)] = (tensor, names)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _round_matmul(mode: FakeQuantization, left: torch.Tensor, right: torch.Tensor) -> Iterator[Any]:
    """Yield both operands of a matmul; both are rounded along the sum, if one is a weight."""
    constant = [mode.is_constant(left), mode.is_constant(right)]
    outer = left.shape[-1] == 1  # no sum: as of positions and frequencies, which are no weights
    if sum(constant) != 1 or outer or not left.is_floating_point():
        yield from (left, right)
        return
    weight = left if constant[0] else right
    mode.note(weight)
    yield quantize_dequantize(left, [-1])
    yield quantize_dequantize(right, [-2])


def _mm(mode: FakeQuantization, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*_round_matmul(mode, args[0], args[1]), *args[2:])


def _addmm(mode: FakeQuantization, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (args[0], *_round_matmul(mode, args[1], args[2]), *args[3:])


def _convolution(mode: FakeQuantization, args: tuple[Any, ...]) -> tuple[Any, ...]:
    x, weight, transposed, groups = args[0], args[1], args[6], args[8]
    if not mode.is_constant(weight) or mode.is_constant(x):
        return args
    mode.note(weight)
    if transposed:
        apart = weight.unflatten(0, (groups, -1))
        rounded = quantize_dequantize(apart, [1, *range(3, apart.dim())]).flatten(0, 1)
    else:
        rounded = quantize_dequantize(weight, range(1, weight.dim()))
    return (quantize_dequantize(x, range(1, x.dim())), rounded, *args[2:])


def _embedding(mode: FakeQuantization, args: tuple[Any, ...]) -> tuple[Any, ...]:
    table, index = args[0], args[1]
    if not mode.is_constant(table) or not table.is_floating_point():
        return args
    if not mode.is_constant(index):
        mode.note(table)
    return (quantize_dequantize(table, [1]), *args[1:])


LAYERS: dict[Any, Callable[[FakeQuantization, tuple[Any, ...]], tuple[Any, ...]]] = {
    aten.mm.default: _mm,
    aten.bmm.default: _mm,
    aten.addmm.default: _addmm,
    aten.baddbmm.default: _addmm,
    aten.convolution.default: _convolution,
    aten.embedding.default: _embedding,
}
RANDOM = {aten.rand.default, aten.randn.default, aten.bernoulli.p, aten.randint.low}
