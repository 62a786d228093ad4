"""Activation quantization: dynamic, from the values at hand, or static, from calibration.

Linear layers and attention take one scale per row (token), convolutions one per sample: within a
row or sample the integers can be accumulated without scaling. Where a linear layer's weight has
scales for groups, rows may have scales for the same groups. The formulas are the weights'. A static
scale is divided by, `round(x / s) + z`, the rule of ONNX's QuantizeLinear.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fewbit.errors import Error, ShapeError, UsageError, WidthError
from fewbit.numerics import formulas
from fewbit.numerics.arrays import Float32Array, Int32Array, finite_float32, integers
from fewbit.numerics.quantized import Quantized
from fewbit.numerics.widths import ActivationGranularity, Mode, Width, WidthLike


def quantize_activation(
    x: npt.ArrayLike,
    width: WidthLike,
    *,
    granularity: ActivationGranularity = "row",
    group: int | None = None,
    mode: Mode = "max",
    scale: npt.ArrayLike | None = None,
    zero_point: npt.ArrayLike | None = None,
    symmetric: bool = True,
) -> Quantized:
    """Quantize an activation; scales have shape (), x.shape[:-1] or (N,) by granularity.

    With `group`, the size of groups along a row, they have the shape (*x.shape[:-1], K / group).

    With `scale` (one, or one for each run of the granularity) the quantization is static, and
    asymmetric if `zero_point` is given. Otherwise it is dynamic, and asymmetric if asked.
    """
    array = finite_float32(x, "activation")
    width = Width.of(width)
    formulas.check_mode(mode)
    scale_shape = activation_scale_shape(array.shape, granularity, group)
    runs = array.reshape(
        math.prod(scale_shape), group or math.prod(array.shape[len(scale_shape) :])
    )
    if scale is not None:
        fixed_scale = _static_scale(scale, scale_shape)
        fixed_zero = _static_zero_point(zero_point, fixed_scale.shape, width, symmetric)
        values = formulas.with_scale(runs, width, fixed_scale, fixed_zero)
        return Quantized(values.reshape(array.shape), fixed_scale, fixed_zero, width)
    if zero_point is not None:
        raise UsageError(
            "a zero point was given without a scale",
            hint="static quantization takes both; dynamic asymmetric takes symmetric=False",
        )
    if symmetric:
        values, scales = formulas.symmetric(runs, width, mode)
        return Quantized(values.reshape(array.shape), scales.reshape(scale_shape), None, width)
    values, scales, zeros = formulas.asymmetric(runs, width)
    return Quantized(
        values.reshape(array.shape), scales.reshape(scale_shape), zeros.reshape(scale_shape), width
    )


def activation_scale_shape(
    shape: tuple[int, ...], granularity: ActivationGranularity, group: int | None = None
) -> tuple[int, ...]:
    """Return the scales' shape for an activation of this shape."""
    if (group is not None) != (granularity == "group"):
        raise UsageError(
            f"granularity '{granularity}' with group {group}",
            hint="a group size goes with granularity 'group', and only with it",
        )
    if granularity == "tensor":
        return ()
    if granularity not in ("row", "sample", "group"):
        raise UsageError(
            f"there is no granularity '{granularity}'",
            hint="activations have 'tensor', 'row', 'sample' and 'group'",
        )
    if not shape:
        raise ShapeError(f"a scalar activation has no {granularity}", hint="use 'tensor'")
    if group is not None:
        check_groups(shape[-1], group)
        return (*shape[:-1], shape[-1] // group)
    return shape[:-1] if granularity == "row" else shape[:1]


def check_groups(k: int, group: int) -> None:
    """Refuse groups that do not divide a row of k."""
    if group < 1 or k % group:
        raise ShapeError(
            f"groups of {group} do not divide a row of {k} activations",
            hint="choose a size that divides it",
        )


def _static_scale(scale: npt.ArrayLike, shape: tuple[int, ...]) -> Float32Array:
    array = finite_float32(scale, "activation scale")
    if array.size and array.min() <= 0:
        raise Error("an activation scale must be positive", hint="calibrate the layer again")
    if array.size == 1:
        return array.reshape(())
    if array.shape != shape:
        raise ShapeError(
            f"activation scales of shape {array.shape} do not fit the granularity's {shape}",
            hint="give one scale, or one for each run",
        )
    return array


def _static_zero_point(
    zero_point: npt.ArrayLike | None, shape: tuple[int, ...], width: Width, symmetric: bool
) -> Int32Array | None:
    if zero_point is None:
        if not symmetric:
            raise UsageError("asymmetric static quantization needs a zero point")
        return None
    formulas.check_asymmetric(width)
    array = integers(zero_point, "zero point")
    if not width.holds(array):
        raise WidthError(f"zero points must fit {width} bits, {width.qmin} to {width.qmax}")
    if array.size == 1:
        return np.full(shape, array.reshape(()), np.int32)
    if array.shape != shape:
        raise ShapeError(f"zero points of shape {array.shape} do not fit scales of shape {shape}")
    return array.astype(np.int32)
