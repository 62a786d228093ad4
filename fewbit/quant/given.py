"""Weights whose integers, scales and zero points another tool has chosen.

GPTQ, AWQ and their like choose integers that rounding a float weight again would not find. Such a
weight is a `Quantized` like any other; `given_weight` makes one from what a tool has, and nothing
in it is computed anew: integers and zero points move together where a tool counts from 0, and
scales must be float32 numbers already. A recipe may leave the layer's weight open ('wfpa8', 'fp');
where it says how the weight is quantized, it must say what is given. The weight of a layer that is
rotated is given as it is rotated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.errors import Error, Place, ShapeError, UsageError, WidthError
from fewbit.numerics import Quantized, Width, WidthLike
from fewbit.numerics.arrays import (
    Float32Array,
    IntArray,
    finite_float32,
    fits_f16,
    integers,
)
from fewbit.numerics.fitted_scales import FITTED
from fewbit.quant.scheme import LayerScheme

GivenWeights = Mapping[str, Quantized]
"""Weights by layer name."""


def given_weight(
    values: npt.ArrayLike,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike | None = None,
    *,
    width: WidthLike,
    signed: bool = True,
) -> Quantized:
    """The weight `(values - zero_point) * scale`, exactly.

    Scales and zero points are for the whole weight, for each of N output channels, or for groups,
    [N, G]; dimensions of 1 at their end do not matter. Integers that are not `signed` count from 0
    to 2^bits - 1. Zero points that are all in the middle are none: the weight is symmetric.
    """
    width = Width.of(width)
    array = integers(values, "weight")
    if array.ndim < 2 or array.size == 0:
        raise ShapeError(f"a weight of shape {array.shape} has no output channels and inputs")
    start = 0 if signed else _first_signed(width)
    scales = _scales(scale, array.shape)
    zeros = _zero_points(zero_point, array.shape, signed)
    if zeros is not None:
        if zeros.shape != scales.shape:
            raise ShapeError(
                f"zero points of shape {zeros.shape} do not fit scales of shape {scales.shape}"
            )
        zeros = _in_range(zeros, start, width, "zero points").astype(np.int32)
        zeros = zeros if zeros.any() else None
    moved = _in_range(array, start, width, "integers").astype(np.int8)
    return Quantized(np.ascontiguousarray(moved), scales, zeros, width)


def reconcile(scheme: LayerScheme, weight: Quantized) -> tuple[LayerScheme, Quantized]:
    """A layer's scheme with a given weight, and the weight in the form that the scheme says."""
    weight = _in_form(weight, scheme)
    own = _scheme_with(weight, scheme)
    if scheme.weight is not None and own != scheme:
        open_scheme = LayerScheme(act=scheme.act, static=scheme.static)
        raise UsageError(
            f"the recipe says '{scheme}', and the weight that is given is '{own}'",
            hint=f"write '{own}', or '{open_scheme}', which takes the weight as it is given",
        )
    return own, weight


def check_names(weights: Sequence[str], layers: Sequence[str]) -> None:
    for name in weights:
        if name in layers:
            continue
        close = get_close_matches(name, layers, n=1) or list(layers[:3])
        raise UsageError(
            f"a weight is given for '{name}', which is no layer of the program",
            hint=f"did you mean '{close[0]}'?" if len(close) == 1 else f"layers: {close}",
        )


def check_shape(name: str, weight: Quantized, shape: tuple[int, ...]) -> None:
    if weight.shape != shape:
        raise ShapeError(
            f"the weight that is given has shape {weight.shape}, the layer's has {shape}",
            place=Place(layer=name),
        )


def same_weight(a: Quantized, b: Quantized) -> bool:
    """Return whether two weights have the same width, integers, scales, zero points and offsets."""
    if a.width != b.width:
        return False
    pairs: list[tuple[Any, Any]] = [
        (a.values, b.values),
        (a.scale, b.scale),
        (a.zero_point, b.zero_point),
        (a.offset, b.offset),
    ]
    if any((x is None) != (y is None) for x, y in pairs):
        return False
    return all(np.array_equal(x, y) for x, y in pairs if x is not None)


def _first_signed(width: Width) -> int:
    if width.is_binary or width.is_ternary:
        raise WidthError(
            f"{width} bits do not count from 0",
            hint="give -1 and +1 (and 0 for ternary), with their sign",
        )
    return width.qmin


def _in_range(array: IntArray, start: int, width: Width, what: str) -> IntArray:
    """Integers that count from 0, counted from `start`; all must be the width's."""
    least, most = width.qmin - start, width.qmax - start
    low, high = int(array.min()), int(array.max())
    if least <= low and high <= most:
        return array.astype(np.int64) + start
    raise WidthError(
        f"{what} from {low} to {high} do not fit {width} bits, {least} to {most}",
        hint="is the width right, and do they count from 0 (signed=False)?",
    )


def _scales(scale: npt.ArrayLike, shape: tuple[int, ...]) -> Float32Array:
    given = np.asarray(scale)
    if given.dtype.kind in "iub":
        raise Error(f"scales are floating-point numbers, not {given.dtype}")
    scales = finite_float32(given, "scale")
    if not np.array_equal(scales.astype(given.dtype), given):
        raise Error(
            f"some scales of type {given.dtype} are not float32 numbers",
            hint="round them in the tool that made them: scales are not changed here",
        )
    return scales.reshape(_by_run(scales.shape, shape, "scales"))


def _zero_points(
    zero_point: npt.ArrayLike | None, shape: tuple[int, ...], signed: bool
) -> IntArray | None:
    if zero_point is None:
        if signed:
            return None
        raise UsageError(
            "integers that count from 0 have a zero point",
            hint="give it (for 4 bits around the middle: 8), or 0 if the weight has no negatives",
        )
    given = np.asarray(zero_point)
    with np.errstate(invalid="ignore"):
        whole = given if given.dtype.kind in "iu" else given.astype(np.int64)
    if not np.array_equal(whole, given):
        raise WidthError(
            "some zero points are not integers",
            hint="a weight here is (u - z)·s with integers u and z; "
            "u·s + b with any float b has no such form",
        )
    return whole.reshape(_by_run(whole.shape, shape, "zero points"))


def _by_run(given: tuple[int, ...], shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    """The shape without ones at its end: (), (N,) or (N, G)."""
    channels, reduced = shape[0], math.prod(shape[1:])
    short = given
    while short and short[-1] == 1 and short != (channels,):
        short = short[:-1]
    if short in ((), (channels,)):
        return short
    if len(short) == 2 and short[0] == channels and reduced % short[1] == 0:
        return short
    raise ShapeError(
        f"{what} of shape {given} do not fit a weight of shape {shape}",
        hint=f"they are one number, [{channels}] for channels, or [{channels}, G] for groups "
        f"whose number G divides {reduced}",
    )


def _in_form(weight: Quantized, scheme: LayerScheme) -> Quantized:
    """One group is a channel, and no zero point is a zero point of 0, if the scheme says so."""
    reduced = math.prod(weight.shape[1:])
    if weight.scale.ndim == 1 and scheme.group == reduced:
        zeros = None if weight.zero_point is None else weight.zero_point[:, None]
        offset = None if weight.offset is None else weight.offset[:, None]
        weight = replace(weight, scale=weight.scale[:, None], zero_point=zeros, offset=offset)
    if weight.zero_point is None and not scheme.symmetric:
        weight = replace(weight, zero_point=np.zeros(weight.scale.shape, np.int32))
    return weight


def _scheme_with(weight: Quantized, scheme: LayerScheme) -> LayerScheme:
    rank = weight.scale.ndim
    groups = weight.scale.shape[1] if rank == 2 else None
    is_symmetric = weight.zero_point is None
    # Scales that were fitted look like any others.
    mode = scheme.mode if is_symmetric and scheme.mode in FITTED else "max"
    stored = [weight.scale] if weight.offset is None else [weight.scale, weight.offset]
    is_narrow = scheme.scales == "f16" and all(map(fits_f16, stored))
    return LayerScheme(
        weight=weight.width,
        act=scheme.act,
        hadamard=scheme.hadamard,
        mode=mode if weight.offset is None else "offset",
        blocks=scheme.blocks,
        granularity=("tensor", "channel", "group")[rank],
        group=None if groups is None else math.prod(weight.shape[1:]) // groups,
        static=scheme.static,
        symmetric=is_symmetric,
        scales="f16" if is_narrow else "f32",
    )
