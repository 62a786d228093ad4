"""What the numerics accept as arrays, and how bad values are refused.

Floats of any precision become C-contiguous float32, in which every formula is computed. NaN and
infinity have no quantized value and would poison a whole scale, so they are errors here rather
than wrong integers later; so are float64 values that float32 cannot hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.errors import Error, WidthError

Float32Array = npt.NDArray[np.float32]
Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
UInt8Array = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.integer[Any]]


def float32(x: npt.ArrayLike, what: str) -> Float32Array:
    """Return `x` as a C-contiguous float32 array; real numbers only."""
    array = np.asarray(x)
    if np.iscomplexobj(array):
        raise Error(f"the {what} holds complex numbers", hint="only real values can be quantized")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(array, dtype=np.float32, order="C")
    except (TypeError, ValueError) as cause:
        raise Error(f"the {what} of type {array.dtype} does not convert to float32") from cause


def finite_float32(x: npt.ArrayLike, what: str) -> Float32Array:
    """Return `float32(x)`, refusing NaN and infinity."""
    array = float32(x, what)
    finite = np.isfinite(array)
    if finite.all():
        return array
    bad = array.size - int(np.count_nonzero(finite))
    nans = int(np.count_nonzero(np.isnan(array)))
    raise Error(
        f"the {what} holds {bad} of {array.size} values that are not finite in float32 "
        f"({nans} NaN, {bad - nans} infinite)",
        hint="a scale cannot be taken from NaN or infinity; look where they come from",
    )


def integers(x: npt.ArrayLike, what: str) -> IntArray:
    """Return `x` as an integer array of its own type; floats and booleans are refused."""
    array = np.asarray(x)
    if array.dtype.kind not in "iu":
        raise WidthError(
            f"the {what} must hold integers, not {array.dtype}",
            hint="quantize floats first, with quantize_weight or quantize_activation",
        )
    return array


def fits_f16(array: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are numbers of f16."""
    with np.errstate(over="ignore"):
        return np.array_equal(array.astype(np.float16).astype(array.dtype), array)
