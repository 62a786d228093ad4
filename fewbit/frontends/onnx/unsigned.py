"""Unsigned inputs and outputs: as such at the boundary of a program, and in wider integers inside.

Two ops of torch carry this through a trace: `widen` reads an unsigned tensor, `narrow` writes one.
The importer of PyTorch's graphs writes them as casts. No other op takes unsigned tensors.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Node
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue

from fewbit.dialects.upstream.tensor import BitcastOp
from fewbit.frontends.onnx.kinds import HELD, UNSIGNED
from fewbit.frontends.torch.aten import Arguments, converts
from fewbit.frontends.torch.emit import Emitter
from fewbit.frontends.torch.types import NARROW, WIDEN, tensor_type
from fewbit.passes.linalg.building.loops import apply

_HELD = {dtype: HELD[kind] for kind, dtype in UNSIGNED.items()}
_BOUNDARY = {str(dtype).removeprefix("torch."): dtype for dtype in UNSIGNED.values()}

_torch_library: Any = torch.library  # its functions are half typed
_library = _torch_library.Library("fewbit", "DEF")
_library.define("widen(Tensor x) -> Tensor")
_library.define("narrow(Tensor x, str dtype) -> Tensor")


def widen(x: Tensor) -> Tensor:
    """An unsigned tensor in the type that holds its values."""
    return torch.ops.fewbit.widen(x)


def narrow(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.ops.fewbit.narrow(x, str(dtype).removeprefix("torch."))


@_torch_library.impl(_library, "widen", "CompositeExplicitAutograd")
def _widen(x: Tensor) -> Tensor:
    return x.view(torch.int64) if x.dtype is torch.uint64 else x.to(_HELD[x.dtype])


@_torch_library.impl(_library, "narrow", "CompositeExplicitAutograd")
def _narrow(x: Tensor, dtype: str) -> Tensor:
    return x.view(torch.uint64) if dtype == "uint64" else x.to(_BOUNDARY[dtype])


@_torch_library.register_fake("fewbit::widen")
def _fake_widen(x: Tensor) -> Tensor:
    return torch.empty_like(x, dtype=_HELD[x.dtype])


@_torch_library.register_fake("fewbit::narrow")
def _fake_narrow(x: Tensor, dtype: str) -> Tensor:
    return torch.empty_like(x, dtype=_BOUNDARY[dtype])


@converts(WIDEN)
def emit_widen(emitter: Emitter, node: Node, a: Arguments) -> list[SSAValue]:
    held = tensor_type(node.meta["val"])
    element = cast(IntegerType, held.element_type)
    given = emitter.value(a["x"])
    with ImplicitBuilder(emitter.block):
        result = apply(_signless(given), element, lambda v: _extend(v, element))
    return [result]


@converts(NARROW)
def emit_narrow(emitter: Emitter, node: Node, a: Arguments) -> list[SSAValue]:
    given = tensor_type(node.meta["val"])
    unsigned = given.element_type
    assert isinstance(unsigned, IntegerType)
    element = IntegerType(unsigned.bitwidth)
    value = emitter.value(a["x"])
    with ImplicitBuilder(emitter.block):
        result = apply(value, element, lambda v: _truncate(v, element))
        result = _bitcast(result, given)
    return [result]


def _signless(value: SSAValue) -> SSAValue:
    type = cast("TensorType[Attribute]", value.type)
    element = type.element_type
    assert isinstance(element, IntegerType)
    return _bitcast(value, TensorType(IntegerType(element.bitwidth), type.get_shape()))


def _bitcast(value: SSAValue, type: TensorType[Attribute]) -> SSAValue:
    return BitcastOp(operands=[value], result_types=[type]).dest


def _extend(value: SSAValue, element: IntegerType) -> SSAValue:
    return value if value.type == element else arith.ExtUIOp(value, element).result


def _truncate(value: SSAValue, element: IntegerType) -> SSAValue:
    return value if value.type == element else arith.TruncIOp(value, element).result
