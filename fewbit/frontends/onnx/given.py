"""Layers that the file has quantized: their integers, scales and grids, as they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fewbit.frontends.onnx.layers import GivenLayer
from fewbit.ir.layers import layers
from fewbit.numerics import Quantized, Width
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.given import given_weight
from fewbit.quant.quantize import quantize
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme


def with_given_layers(program: Program, given: Mapping[str, GivenLayer]) -> Program:
    """The program with these layers quantized as the file says; the others stay float."""
    present = layers(program.module)
    given = {name: layer for name, layer in given.items() if name in present}
    if not given:
        return program
    weights = {name: _weight(layer) for name, layer in given.items()}
    scales: dict[str, float] = {}
    zeros: dict[str, int] = {}
    for name, layer in given.items():
        if layer.act_scale is not None:
            scales[name] = layer.act_scale
            zeros[name] = layer.act_zero_point
    recipe = Recipe.by_name({name: _scheme(layer) for name, layer in given.items()})
    return quantize(program, recipe, Calibration(scales, zeros), weights=weights)


def _weight(layer: GivenLayer) -> Quantized:
    zeros = layer.zero_point
    if zeros is None and layer.unsigned:
        zeros = np.zeros(layer.scale.shape, np.int32)
    return given_weight(
        layer.values, layer.scale, zeros, width=layer.bits, signed=not layer.unsigned
    )


def _scheme(layer: GivenLayer) -> LayerScheme:
    """Return how activations are quantized; the weight says the rest itself."""
    if layer.act_bits is None:
        return LayerScheme()
    symmetric = layer.act_zero_point == 0
    return LayerScheme(act=Width.of(layer.act_bits), static=True, symmetric=symmetric)
