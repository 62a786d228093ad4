"""Functional layers: functions of torch that are called on a tensor that a model holds.

`nn.MultiheadAttention` and `nn.LSTM` take their weights, and those of their parts, to functions; so
do models that write `F.linear(x, self.weight)`, `x @ self.weight.T` or `addmm`. A program has a
layer there, named after the tensor. `weights_of` lists the tensors that can be such weights;
`LayerCalls` is a mode in which the calls on given weights are handed over.

A mode ends at the first Python function that asks for it, so the two kinds of functions that call
`F.linear` themselves are taken apart: attention runs as a copy that does not ask, and recurrent
networks by the decomposition that `torch.export` uses too. Where a mode is active torch takes none
of its fast paths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction, DispatchKey
from torch._decomp import decompositions
from torch.nn import functional
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from fewbit.base.typed_torch import named_modules, own_buffers, own_parameters
from fewbit.quant.torch.matmul import Rounding, check_rounding, few_bit_lookup, few_bit_matmul

WEIGHT = "weight"

_Known = TypeVar("_Known")


@dataclass(frozen=True)
class LayerCall:
    """A call of a layer's function."""

    weight: Tensor
    activation: Tensor | None
    """None where a table is looked up: indices are no activations."""
    plain: Callable[[], Tensor]
    """The call as it was made."""
    rounded: Callable[[Rounding], Tensor]
    """The call as a few-bit layer."""
    is_transposed: bool = False
    """Whether the weight is held as inputs by outputs."""

    def few_bit(self, how: Rounding) -> Tensor:
        shape, is_table = tuple(self.weight.shape), self.activation is None
        shape = shape[::-1] if self.is_transposed else shape
        check_rounding(how.scheme, shape, how.act_scale, is_table=is_table)
        return self.rounded(how)


class LayerCalls(TorchFunctionMode, Generic[_Known]):
    """Hands calls on known weights to `handle`, with what is known of the weight."""

    def __init__(
        self, known: Mapping[int, _Known], handle: Callable[[_Known, LayerCall], Tensor]
    ) -> None:
        super().__init__()
        self.known = known
        """By the identity of the weight."""
        self.handle = handle
        self._transposed: dict[int, tuple[Tensor, Tensor]] = {}
        """Transposed weights that a call was given, by identity, and the weights themselves."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        inner = _CALLERS.get(func)
        if inner is not None:
            with self:
                return inner(*args, **named)
        call = self._call(func, args, named)
        known = None if call is None else self.known.get(id(call.weight))
        if call is not None and known is not None:
            with DisableTorchFunction():
                return self.handle(known, call)
        result = func(*args, **named)
        if func in _TRANSPOSES and id(args[0]) in self.known and _transposes(args[0], result):
            self._transposed[id(result)] = (result, args[0])
        return result

    def _call(
        self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> LayerCall | None:
        if func in _READERS:
            call = _READERS[func](*args, **named)
            _, held = self._transposed.get(id(call.weight), (None, None))
            return call if held is None else replace(call, weight=held, is_transposed=True)
        operands = _MATMULS[func](*args, **named) if func in _MATMULS else None
        if operands is None:
            return None
        x, matrix, bias = operands
        _, held = self._transposed.get(id(matrix), (None, None))
        if matrix.dim() != 2 or id(x) in self.known:
            return None
        return _read_matmul(x, matrix, bias, held)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Tensors of a model that can be a layer's weight, by path.

    A shared module has its first name, and a tensor of several modules its last, as in an
    imported program.
    """
    last = {id(tensor): (path, tensor) for path, tensor in _tensors(model)}
    return dict(last.values())


def layer_name(path: str) -> str:
    """The name of the layer whose weight has this path."""
    return path.removesuffix(f".{WEIGHT}")


def held_tensor(model: nn.Module, path: str) -> Tensor | None:
    """The tensor at a path, where it is held as it is and not computed."""
    owner, _, name = path.rpartition(".")
    try:
        module = model.get_submodule(owner)
    except AttributeError:
        return None
    tensor = {**own_buffers(module), **own_parameters(module)}.get(name, vars(module).get(name))
    return tensor if isinstance(tensor, Tensor) else None


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for module_path, module in named_modules(model):
        for name, tensor in (vars(module) | own_parameters(module) | own_buffers(module)).items():
            if not isinstance(tensor, Tensor) or is_lazy(tensor):
                continue
            if tensor.is_floating_point() and 2 <= tensor.dim() <= 4:
                yield f"{module_path}.{name}" if module_path else name, tensor


def _read_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> LayerCall:
    return LayerCall(
        weight,
        input,
        lambda: functional.linear(input, weight, bias),
        lambda how: few_bit_matmul(how, functional.linear, input, weight, bias, 0),
    )


def _transposes(weight: Tensor, result: Tensor) -> bool:
    return weight.dim() == 2 and result.stride() == weight.stride()[::-1]


def _read_matmul(x: Tensor, matrix: Tensor, bias: Tensor | None, held: Tensor | None) -> LayerCall:
    """A matmul with a matrix of inputs by outputs, which may be a weight that is transposed."""

    def plain() -> Tensor:
        return torch.matmul(x, matrix) if bias is None else torch.addmm(bias, x, matrix)

    def compute(how: Rounding) -> Tensor:
        weight = matrix.t() if held is None else held
        own = bias if bias is not None and bias.dim() == 1 else None
        y = few_bit_matmul(how, functional.linear, x, weight, own, 0)
        return y if bias is None or own is not None else y + bias

    weight = matrix if held is None else held
    return LayerCall(weight, x, plain, compute, is_transposed=held is None)


_Matmul = tuple[Tensor, Tensor, Tensor | None]


def _operands(input: Tensor, other: Tensor) -> _Matmul:
    return input, other, None


def _biased_operands(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> _Matmul | None:
    return (mat1, mat2, input) if beta == alpha == 1 else None


def _read_convolution(
    function: Callable[..., Tensor],
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *places: Any,
    **options: Any,
) -> LayerCall:
    def convolve(x: Tensor, w: Tensor) -> Tensor:
        return function(x, w, None, *places, **options)

    def compute(how: Rounding) -> Tensor:
        if input.dim() == rank + 2:
            return few_bit_matmul(how, convolve, input, weight, bias, rank)
        return few_bit_matmul(how, convolve, input[None], weight, bias, rank)[0]

    return LayerCall(
        weight, input, lambda: function(input, weight, bias, *places, **options), compute
    )


def _read_embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> LayerCall:
    def lookup(table: Tensor) -> Tensor:
        return functional.embedding(
            input, table, padding_idx, None, norm_type, scale_grad_by_freq, sparse
        )

    def compute(how: Rounding) -> Tensor:
        if max_norm is not None:
            with torch.no_grad():
                torch.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
        return few_bit_lookup(how, lookup, weight)

    options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    return LayerCall(weight, None, lambda: functional.embedding(input, weight, *options), compute)


def _where(function: Any, **names: Any) -> Callable[..., Any]:
    """The same function, in which these names mean something else."""
    inside = {**function.__globals__, **names}
    copy = FunctionType(function.__code__, inside, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _attention() -> Callable[..., Any]:
    """It does not look for modes; the functions that it calls still do."""
    asks = functional.multi_head_attention_forward

    def has_torch_function(tensors: Any) -> bool:
        return False

    return _where(asks, has_torch_function=has_torch_function)


def _recurrent(name: str) -> Callable[..., Any]:
    """The steps of a recurrent network, never one kernel for all of them."""
    overloads = getattr(torch.ops.aten, name)

    def select(*_: Any) -> Any:
        return cast(Any, decompositions).one_layer_lstm

    whole, packed = (
        _where(
            overload.py_kernels[DispatchKey.CompositeImplicitAutograd],
            select_one_layer_lstm_function=select,
        )
        for overload in (overloads.input, overloads.data)
    )

    def run(*args: Any) -> Any:
        # Packed sequences have an argument more, before the weights.
        return whole(*args) if isinstance(args[3], bool) else packed(*args)

    return run


_READERS: dict[Any, Callable[..., LayerCall]] = {
    functional.linear: _read_linear,
    functional.conv1d: functools.partial(_read_convolution, functional.conv1d, 1),
    functional.conv2d: functools.partial(_read_convolution, functional.conv2d, 2),
    functional.embedding: _read_embedding,
}
_MATMULS: dict[Any, Callable[..., _Matmul | None]] = {
    **dict.fromkeys(
        (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, Tensor.mm), _operands
    ),
    **dict.fromkeys((torch.addmm, Tensor.addmm), _biased_operands),
}
_TRANSPOSES: frozenset[Any] = frozenset(
    (
        *(cast(Any, Tensor).T.__get__, cast(Any, Tensor).mT.__get__),
        *(Tensor.t, torch.t, Tensor.transpose, torch.transpose, Tensor.permute, torch.permute),
    )
)
_CALLERS: dict[Any, Callable[..., Any]] = {
    functional.multi_head_attention_forward: _attention(),
    torch.lstm: _recurrent("lstm"),
    torch.gru: _recurrent("gru"),
    torch.rnn_tanh: _recurrent("rnn_tanh"),
    torch.rnn_relu: _recurrent("rnn_relu"),
}
