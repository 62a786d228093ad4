"""GPTQ: integers of a weight that make up for each other's rounding (Frantar et al., 2022).

    weights = gptq(program, data, "w4a8g32")
    quantized = fewbit.quantize(program, "w4a8g32", weights=weights)

A linear layer is to change least on what it is given in sample data, not its weight on the whole.
Its weight is rounded column by column, and the error of each is spread over the columns that are
not rounded yet, by the inverse of the inputs' second moments. Inputs are those of the float
program, so one run shows all layers; layers with one input share its moments.

Scales are those of the recipe, of a group as the columns before have left it. Layers that are not
linear, and a table that is a head too, whose rows are also looked up, are not among the result;
`quantize` rounds them as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.base.progress import progress
from fewbit.dialects.mico import BitLinearOp, GetConstantOp
from fewbit.errors import Error, UsageError
from fewbit.interpreter.mico.constants import constant_value
from fewbit.interpreter.values import Value
from fewbit.ir.layers import layers
from fewbit.ir.symbols import SymbolTable, using
from fewbit.numerics import Quantized, quantize_weight
from fewbit.numerics.formulas import with_offset, with_scale
from fewbit.numerics.hadamard import check_rotation, rotate
from fewbit.numerics.weights import weight_scale_shape
from fewbit.program.program import Program
from fewbit.quant.layer_inputs import Inputs, observe_inputs
from fewbit.quant.quantize import schemes_of
from fewbit.quant.recipe import RecipeLike
from fewbit.quant.scheme import LayerScheme

Matrix = NDArray[np.float64]
DAMPING = 0.01
BLOCK = 128
"""Columns after which the ones behind are brought up to date at once."""


def gptq(
    program: Program, data: Iterable[Inputs], recipe: RecipeLike, *, damping: float = DAMPING
) -> dict[str, Quantized]:
    """Return the weights of linear layers, by name, as `fewbit.quantize` takes them.

    Each item of `data` is the program's inputs, without state. `damping`, a share of the mean
    moment, is added to all: it keeps rare inputs from being fitted too closely. Moments take K²
    floats for each input of layers.
    """
    schemes = schemes_of(program, recipe)
    weights = {
        name: weight
        for name, weight in _weights(program).items()
        if schemes[name].weight is not None
    }
    _check(weights, schemes)
    moments: dict[tuple[str, ...], NDArray[np.float32]] = {}

    def see(names: tuple[str, ...], x: Value) -> None:
        rows = x.reshape(-1, x.shape[-1]).astype(np.float32)
        # Rotated before they are squared: float32 could not tell what an outlier leaves beside it.
        for block in {schemes[name].hadamard for name in names}:
            alike = tuple(name for name in names if schemes[name].hadamard == block)
            rotated = rotate(rows, block)
            moments[alike] = moments.get(alike, 0) + rotated.T @ rotated

    observe_inputs(program, data, weights, see, "Observing")
    rounded: dict[str, Quantized] = {}
    with progress("Rounding", total=len(weights)) as step:
        for name, weight in weights.items():
            seen = [each for names, each in moments.items() if name in names]
            if seen:
                total = reduce(np.add, seen)
                try:
                    rounded[name] = round_columns(weight, total, schemes[name], damping)
                except Error as e:
                    raise e.at(layer=name) from None
            step()
    return rounded


def round_columns(
    weight: NDArray[Any], moments: NDArray[Any], scheme: LayerScheme, damping: float = DAMPING
) -> Quantized:
    """Round a weight, [N, K], for inputs whose second moments, rotated as it is, are [K, K]."""
    assert scheme.weight is not None
    scale_shape = weight_scale_shape(weight.shape, scheme.granularity, scheme.group)
    width, (n, k) = scheme.weight, weight.shape
    w = rotate(weight, scheme.hadamard).astype(np.float64)
    spread = _spread(moments, damping)
    group = scheme.group or k
    parts: list[Quantized] = []
    values = np.zeros((n, k), np.int8)
    size = max(BLOCK // group * group, 1) if group <= BLOCK else group
    for start in range(0, k, size):
        stop = min(start + size, k)
        errors = np.zeros((n, stop - start))
        for column in range(start, stop):
            if column % group == 0:
                parts.append(_scales(w[:, column : column + group], scheme))
            part, here = parts[-1], w[:, column]
            integers = _round(here[:, None].astype(np.float32), part)
            values[:, column] = integers[:, 0]
            error = (here - _values(integers[:, 0], part)) / spread[column, column]
            w[:, column + 1 : stop] -= np.outer(error, spread[column, column + 1 : stop])
            errors[:, column - start] = error
        w[:, stop:] -= errors @ spread[start:stop, stop:]
    scale = np.stack([part.scale for part in parts], axis=-1).reshape(scale_shape)
    zeros = [part.zero_point for part in parts if part.zero_point is not None]
    zero_point = np.stack(zeros, axis=-1).reshape(scale_shape) if zeros else None
    offsets = [part.offset for part in parts if part.offset is not None]
    offset = np.stack(offsets, axis=-1).reshape(scale_shape) if offsets else None
    return Quantized(values, scale, zero_point, width, offset)


def _check(weights: Mapping[str, NDArray[Any]], schemes: Mapping[str, LayerScheme]) -> None:
    """Refuse schemes that a weight's shape does not allow, before anything is run."""
    for name, weight in weights.items():
        scheme = schemes[name]
        try:
            check_rotation(scheme.hadamard, weight.shape)
            weight_scale_shape(weight.shape, scheme.granularity, scheme.group)
        except Error as e:
            raise e.at(layer=name) from None


def _weights(program: Program) -> dict[str, NDArray[Any]]:
    """Return the float weights that linear layers alone read."""
    weights: dict[str, NDArray[Any]] = {}
    with using(SymbolTable(program.module)):
        for name, ops in layers(program.module).items():
            read = ops[0].weight.owner
            if all(isinstance(op, BitLinearOp) for op in ops) and isinstance(read, GetConstantOp):
                weights[name] = constant_value(read.constant, program.store)
    return weights


def _spread(moments: NDArray[Any], damping: float) -> Matrix:
    """Return the upper Cholesky factor of the inverse: how errors are spread."""
    wide: Matrix = moments.astype(np.float64)
    places = np.diag_indices_from(wide)
    wide[places] += damping * np.mean(wide[places])
    # An input that is always 0 has no say, and what nothing was seen of is only rounded.
    wide[places] = np.where(wide[places] > 0, wide[places], 1.0)
    try:
        return np.linalg.cholesky(np.linalg.inv(wide)).T.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        raise UsageError(
            "the inputs of the layer do not differ enough to tell its columns apart",
            hint="give more data, or more damping than 0",
        ) from None


def _scales(part: Matrix, scheme: LayerScheme) -> Quantized:
    """Return a group, or all columns, with the scales that rounding it as it is would give."""
    assert scheme.weight is not None
    return quantize_weight(
        part.astype(np.float32),
        scheme.weight,
        mode=scheme.mode,
        granularity="tensor" if scheme.granularity == "tensor" else "channel",
        symmetric=scheme.symmetric,
        scales=scheme.scales,
    )


def _round(column: NDArray[np.float32], part: Quantized) -> NDArray[np.int8]:
    """Round a column with the scales of its group."""
    if part.offset is not None:
        return with_offset(column, part.width, part.scale, part.offset)
    scale = np.broadcast_to(part.scale, (len(column),)).astype(np.float32)
    return with_scale(column, part.width, scale, part.zero_point)


def _values(integers: NDArray[np.int8], part: Quantized) -> Matrix:
    centered = integers.astype(np.float64)
    if part.offset is not None:
        return (centered - part.width.qmin) * part.scale + part.offset
    if part.zero_point is not None:
        centered = centered - part.zero_point
    return centered * part.scale
