"""Weight quantization: how a weight is cut into runs, each with one scale.

A weight of any rank is seen as [N, K]: N output channels, K the product of the other dimensions,
over which a layer reduces. The formulas are in `formulas.py`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, UsageError
from fewbit.numerics import formulas
from fewbit.numerics.arrays import Float32Array, Int8Array, finite_float32
from fewbit.numerics.fitted_scales import fit_scales
from fewbit.numerics.quantized import Quantized, check_offset_width
from fewbit.numerics.widths import Granularity, ScaleType, WeightMode, Width, WidthLike

BLOCK = 1 << 20
"""Elements that are quantized at once."""
LARGEST_HALF = np.float32(65504)


def quantize_weight(
    w: npt.ArrayLike,
    width: WidthLike,
    *,
    mode: WeightMode = "max",
    granularity: Granularity = "channel",
    group: int | None = None,
    symmetric: bool = True,
    scales: ScaleType = "f32",
) -> Quantized:
    """Quantize a weight; scales have shape (), (N,) or (N, K/group) by granularity.

    `mode` matters for 3 to 8 bits; narrower widths always use mean|w|, and have no other modes but
    `offset`. Asymmetric weights and those with offsets (2 to 8 bits) take their scale from
    max - min. `scales` of f16, which asymmetric weights do not have, are rounded before the weight
    is.
    """
    array = finite_float32(w, "weight")
    width = Width.of(width)
    scale_shape = weight_scale_shape(array.shape, granularity, group)
    runs = array.reshape(math.prod(scale_shape), -1)
    if symmetric:
        values, scale, offset = _by_mode(runs, width, mode, scales)
        if offset is not None:
            offset = offset.reshape(scale_shape)
        scale = scale.reshape(scale_shape)
        return Quantized(values.reshape(array.shape), scale, None, width, offset)
    if scales != "f32":
        raise UsageError("an asymmetric weight has scales of float32")
    if mode != "max":
        raise UsageError(
            f"an asymmetric weight has no mode '{mode}'", hint="its scale comes from max - min"
        )
    values, scale, zero_point = formulas.asymmetric(runs, width)
    return Quantized(
        values.reshape(array.shape),
        scale.reshape(scale_shape),
        zero_point.reshape(scale_shape),
        width,
    )


def _by_mode(
    runs: Float32Array, width: Width, mode: WeightMode, type: ScaleType
) -> tuple[Int8Array, Float32Array, Float32Array | None]:
    """Return values, scales and perhaps offsets.

    Some runs are quantized after others, so that what lies between takes little memory.
    """
    values = np.empty(runs.shape, np.int8)
    scales = np.empty(len(runs), np.float32)
    offsets = np.empty(len(runs), np.float32) if mode == "offset" else None
    if offsets is not None:
        check_offset_width(width)
    count = max(1, BLOCK // max(1, runs.shape[1]))
    for start in range(0, len(runs), count):
        part = slice(start, start + count)
        here = runs[part]
        if offsets is None:
            values[part], scales[part] = fit_scales(here, width, mode)
        else:
            values[part], scales[part], offsets[part] = formulas.from_lowest(here, width)
        if type == "f32":
            continue
        scales[part] = as_half(scales[part])
        if offsets is None:
            values[part] = formulas.with_scale(here, width, scales[part])
        else:
            offsets[part] = as_half(offsets[part])
            values[part] = formulas.with_offset(here, width, scales[part], offsets[part])
    return values, scales, offsets


def as_half(numbers: Float32Array) -> Float32Array:
    """Return the nearest numbers of f16, those of the largest magnitude where f16 has none."""
    return np.clip(numbers, -LARGEST_HALF, LARGEST_HALF).astype(np.float16).astype(np.float32)


def weight_scale_shape(
    shape: tuple[int, ...], granularity: Granularity, group: int | None = None
) -> tuple[int, ...]:
    """Return the scales' shape for a weight of this shape; groups must divide K."""
    if math.prod(shape) == 0 or not shape:
        raise ShapeError(f"a weight of shape {shape} has no output channels to quantize")
    if (group is not None) != (granularity == "group"):
        raise UsageError(
            f"granularity '{granularity}' with group {group}",
            hint="a group size goes with granularity 'group', and only with it",
        )
    if granularity == "tensor":
        return ()
    if granularity == "channel":
        return (shape[0],)
    if group is None:
        raise UsageError(
            f"there is no granularity '{granularity}'",
            hint="weights have 'tensor', 'channel' and 'group'",
        )
    k = math.prod(shape[1:])
    if group < 1 or k % group != 0:
        raise ShapeError(
            f"groups of {group} do not divide the reduction dimension K = {k}",
            hint=f"choose a group size that divides {k}, or granularity 'channel'",
        )
    return (shape[0], k // group)
