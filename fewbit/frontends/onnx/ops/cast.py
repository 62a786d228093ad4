"""Conversions between element types."""

from __future__ import annotations

import torch
from torch import Tensor

from fewbit.frontends.onnx import kinds
from fewbit.frontends.onnx.kinds import BITS, BOOL, SMALL_FLOATS, held_in, is_float, wrap_around
from fewbit.frontends.onnx.ops.arithmetic import right_shift
from fewbit.frontends.onnx.small_floats import round_to
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Traced

_WORDS = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


@op("Cast", any_sign=True)
def cast(call: Call, x: Tensor) -> Known | Traced:
    return call.result(convert_kind(call, x, call.kind(0), call.attr("to")), call.attr("to"))


@op("CastLike", tensors=1, any_sign=True)
def cast_like(call: Call, x: Tensor) -> Known | Traced:
    kind = call.kind(1)
    return call.result(convert_kind(call, x, call.kind(0), kind), kind)


def convert_kind(call: Call, x: Tensor, given: int, wanted: int) -> Tensor:
    held = held_in(wanted)
    if given == wanted:
        return x
    if wanted in SMALL_FLOATS:
        return round_to_small(call, x, wanted)
    if wanted == BOOL:
        return x != 0
    if given == kinds.UINT64 and is_float(wanted):
        # An odd last bit stands for the half that is shifted out.
        half = (right_shift(x, 1) & (2**63 - 1)) | (x & 1)
        return torch.where(x < 0, half.to(held) * 2, x.to(held))
    if is_float(wanted):
        return x.to(held)
    if is_float(given):
        return _truncate(call, x, wanted)
    if given == BOOL:
        return x.to(held)
    return wrap_around(x, wanted)


def round_to_small(call: Call, x: Tensor, wanted: int) -> Tensor:
    """Numbers rounded to a float of 4 or 8 bits."""

    def read(table: Known) -> Tensor:
        return call.evaluator.tensor(table, call.folding)

    mode = call.attr("round_mode", "up") if wanted == kinds.FLOAT8E8M0 else "nearest"
    return round_to(x, wanted, read, saturate=bool(call.attr("saturate", 1)), mode=mode)


def _truncate(call: Call, x: Tensor, wanted: int) -> Tensor:
    held = held_in(wanted)
    if wanted == kinds.UINT64:
        high = x.to(torch.float64) - 2.0**63
        return torch.where(x >= 2.0**63, high.to(torch.int64) + (-(2**63)), x.to(torch.int64))
    if torch.iinfo(held).bits >= 32 and BITS[wanted] == torch.iinfo(held).bits:
        return x.to(held)
    return wrap_around(x.to(torch.int64), wanted)


@op("BitCast", any_sign=True)
def bit_cast(call: Call, x: Tensor) -> Known | Traced:
    """Go by way of signed integers of as many bits, which hold those of any type."""
    given, wanted = call.kind(0), call.attr("to")
    bits = _bits(given)
    if bits not in _WORDS or bits != _bits(wanted):
        raise call.refusal(
            f"the bits of {kinds.name_of(given)} are not read as {kinds.name_of(wanted)}"
        )
    word = x.view(_WORDS[bits]) if is_float(given) else x.to(_WORDS[bits])
    if wanted == BOOL:
        return call.result(word != 0, wanted)
    held = held_in(wanted)
    result = word.view(held) if is_float(wanted) else wrap_around(word, wanted)
    return call.result(result, wanted)


def _bits(kind: int) -> int:
    """Return how many bits a type has; 0 where it is held in another without them."""
    if kind in SMALL_FLOATS:
        return 0
    return BITS.get(kind) or 8 * held_in(kind).itemsize
