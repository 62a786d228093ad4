"""Floats of 4 and 8 bits: what they are worth, and rounding to them.

A graph holds them as f32, in which all of them are exact; the boundary of a program has their bits,
in uint8. Both ways go by tables of the few values that a format has. To round is to count the
steps between values that a number is beyond, so that one rule serves every format: ties go to the
even code, and what is beyond the last step saturates or is the format's infinity or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch
from onnx import TensorProto
from torch import Tensor

from fewbit.base.typed_torch import from_numpy
from fewbit.frontends.onnx.kinds import FLOAT, name_of, natural_kind
from fewbit.frontends.onnx.values import Known, outside_trace

Read = Callable[[Known], Tensor]
"""Gives a table as a constant of the program."""

_TYPES: dict[int, Any] = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


@dataclass(frozen=True)
class _Format:
    values: np.ndarray[Any, Any]
    """What each code is worth, in f64."""
    count: int
    """How many codes are finite and not negative; these are the first ones, in order."""
    sign: int
    """The bit of the sign; 0 where there is none."""
    nan: int
    """The code of NaN; where the format has none, what NaN becomes."""
    beyond: int
    """The code of what is too large, if it does not saturate."""
    has_negative_zero: bool

    @property
    def magnitudes(self) -> np.ndarray[Any, Any]:
        return self.values[: self.count]


@cache
def _format(kind: int) -> _Format:
    dtype, bits = _TYPES[kind], 4 if kind == TensorProto.FLOAT4E2M1 else 8
    values = np.arange(2**bits).astype(np.uint8).view(dtype).astype(np.float64)
    sign = 0 if kind == TensorProto.FLOAT8E8M0 else 2 ** (bits - 1)
    count = int(np.isfinite(values[: sign or None]).sum())
    nan, infinity = (_code(value, dtype) for value in (np.nan, np.inf))
    return _Format(values, count, sign, nan, infinity, bool(sign and values[sign] == 0))


def _code(value: float, dtype: Any) -> int:
    with np.errstate(all="ignore"):
        return int(np.array([value], np.float32).astype(dtype).view(np.uint8)[0])


def decode(codes: Tensor, kind: int, read: Read) -> Tensor:
    """Return what codes are worth, in f32."""
    return _look_up(codes, _format(kind).values, kind, "values", read)


def encode(x: Tensor, kind: int, read: Read) -> Tensor:
    """The codes of numbers that the format has."""
    return _encode(x, kind, read, saturate=False, mode="nearest")


def round_to(
    x: Tensor, kind: int, read: Read, *, saturate: bool = True, mode: str = "nearest"
) -> Tensor:
    """The values of the format that are nearest, in f32; `up` and `down` are for powers of two."""
    return decode(_encode(x, kind, read, saturate=saturate, mode=mode), kind, read)


def _encode(x: Tensor, kind: int, read: Read, *, saturate: bool, mode: str) -> Tensor:
    format = _format(kind)
    x = x if x.dtype is torch.float64 else x.to(torch.float32)
    steps = _steps(format, mode, np.float64 if x.dtype is torch.float64 else np.float32)
    name = f"{name_of(kind)}.{mode}.steps"
    places = read(_table(steps, natural_kind(x.dtype), f"{name}.{x.dtype.itemsize}"))
    size = x.abs()
    code = (size.unsqueeze(-1) > places).sum(-1).to(torch.int32)
    last = format.count - 1
    too_large = torch.full_like(code, last if saturate else format.beyond)
    code = torch.where(code > last, too_large, code)
    if not format.sign:
        special = (x != x) | (size == torch.inf)  # a scale of infinity is no scale
        return torch.where(special, torch.full_like(code, format.nan), code)
    is_negative = x < 0
    if format.has_negative_zero:
        is_negative = is_negative | ((x == 0) & (1 / x < 0))
    # Formats without a negative zero have NaN in its place.
    has_sign = (code < format.sign) & (code >= (0 if format.has_negative_zero else 1))
    code = torch.where(is_negative & has_sign, code + format.sign, code)
    return torch.where(x != x, torch.full_like(code, format.nan), code)


def _steps(format: _Format, mode: str, dtype: Any) -> np.ndarray[Any, Any]:
    """The largest numbers that are still rounded down: to each code but the one behind the last."""
    magnitudes = format.magnitudes
    above = np.append(magnitudes[1:], 2 * magnitudes[-1] - magnitudes[-2])
    if mode == "up":
        return magnitudes.astype(dtype)
    middle = above if mode == "down" else (magnitudes + above) / 2
    # A tie goes to the even code, among powers of two to the larger one; where that is the upper
    # one, the tie is not among the numbers.
    goes_up = (np.arange(format.count) % 2 == 1) | (format.sign == 0)
    excluded = goes_up | (mode == "down")
    middle = middle.astype(dtype)
    return np.where(excluded, np.nextafter(middle, dtype(0)), middle).astype(dtype)


def _look_up(
    codes: Tensor, values: np.ndarray[Any, Any], kind: int, what: str, read: Read
) -> Tensor:
    table = read(_table(values.astype(np.float32), FLOAT, f"{name_of(kind)}.{what}"))
    taken = torch.index_select(table, 0, codes.reshape([-1]).to(torch.int64))
    return taken.reshape(codes.shape)


def _table(array: np.ndarray[Any, Any], kind: int, name: str) -> Known:
    with outside_trace():
        return Known(from_numpy(np.ascontiguousarray(array)), kind, name)
