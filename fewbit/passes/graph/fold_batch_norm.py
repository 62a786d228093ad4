"""Fold batch norms into the float layers in front of them.

A batch norm of constants is a factor and an offset for each channel, which the layer's weight and
bias can take in: one op less, and nothing left between a layer and what follows it. The new
weights are computed in float64 and rounded once, and keep their names; a bias that a layer did not
have is named after its weight. A quantized layer keeps its batch norm: folding would move the
integers of its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects.mico import BatchNormOp, QuantizedLayerOp, element_type, shape_of
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.ir.symbols import using
from fewbit.passes.graph.changed_weights import ChangedWeights, constant_of, is_constant
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program


@dataclass(frozen=True)
class FoldBatchNorm(ModulePass):
    """Fold batch norms into the float layers in front of them."""

    name = "fold-batch-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _fold_all(compile_context(ctx).program(op))


def fold_batch_norm(program: Program) -> Program:
    """Return a copy of the program without the batch norms that float layers can take in."""
    copy = program.copy()
    _fold_all(copy)
    return copy


def _fold_all(program: Program) -> None:
    weights = ChangedWeights(program)
    with using(weights.symbols):
        norms = [op for op in weights.program.module.walk() if isinstance(op, BatchNormOp)]
        for norm in norms:
            layer = norm.input.owner
            if isinstance(layer, QuantizedLayerOp) and _can_take_in(layer, norm):
                _fold(layer, norm, weights)
        weights.sweep()


def _can_take_in(layer: QuantizedLayerOp, norm: BatchNormOp) -> bool:
    if layer.weight_width is not None or layer.act_width is not None:
        return False
    if not layer.result.has_one_use() or layer.result.type != norm.result.type:
        return False
    channels = 1 if isinstance(layer, ConvolutionOp) else len(shape_of(layer.result.type)) - 1
    parameters = [layer.weight, norm.weight, norm.bias, norm.mean, norm.variance]
    if layer.bias is not None:
        parameters.append(layer.bias)
    return channels == 1 and all(map(is_constant, parameters))


def _fold(layer: QuantizedLayerOp, norm: BatchNormOp, weights: ChangedWeights) -> None:
    weight, scale, offset, mean, variance = (
        weights.read(value).astype(np.float64)
        for value in (layer.weight, norm.weight, norm.bias, norm.mean, norm.variance)
    )
    bias = 0 if layer.bias is None else weights.read(layer.bias).astype(np.float64)
    factor = scale / np.sqrt(variance + norm.eps.value.data)
    folded_weight = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    folded_bias = (bias - mean) * factor + offset
    if layer.bias is None:
        name = constant_of(layer.weight).sym_name.data.removesuffix(".weight")
        vector = TensorType(element_type(layer.weight.type), folded_bias.shape)
        new_bias = weights.add(f"{name}.bias", folded_bias, vector, layer)
    else:
        new_bias = weights.change(layer.bias, folded_bias, layer)
    folded = type(layer).of(
        layer.input,
        weights.change(layer.weight, folded_weight, layer),
        new_bias,
        result_types=[norm.result.type],
        **{name: layer.properties.get(name) for name in layer.attribute_names()},
    )
    folded.location = layer.location
    folded.attributes = dict(layer.attributes)
    Rewriter.replace_op(norm, folded)
    Rewriter.erase_op(layer)
