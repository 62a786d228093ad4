"""Costs that follow from a program alone: bytes of its constants, and operations on bits.

The size is that of all constants of the quantized program, packed integers with their scales,
biases, and whatever stays float: what `fewbit compile` has to store. Operations are counted for a
batch of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from fewbit.cost.layers import FLOAT_BITS, observed_layers
from fewbit.dialects.mico import GetConstantOp, QuantizedLayerOp, shape_of
from fewbit.ir.layers import layer_name
from fewbit.numerics import row_bytes, weight_scale_shape
from fewbit.program.program import Program
from fewbit.program.references import constant_bytes, read_bytes
from fewbit.quant.scheme import LayerScheme
from fewbit.search.costs import Cost
from fewbit.search.space import SearchedLayer

FLOAT_BYTES = 4


@dataclass(frozen=True)
class FloatLayer:
    """A layer of a float program, with what it does in one run."""

    searched: SearchedLayer
    bytes: int
    """Those of its weight as floats."""


def find_layers(program: Program, inputs: Sequence[Any]) -> dict[str, FloatLayer]:
    """Return the layers that run and have constant weights, in the order of the first run."""
    found: dict[str, FloatLayer] = {}
    for (name, _), (op, output) in observed_layers(program, inputs):
        read = op.weight.owner
        if layer_name(op) is None or not isinstance(read, GetConstantOp):
            continue
        shape = tuple(shape_of(op.weight.type))
        is_table = not isinstance(op, QuantizedLayerOp)
        macs = 0 if is_table else output.size * prod(shape[1:])
        before = found[name].searched.macs if name in found else 0
        constant = read.symbol.root_reference.data
        layer = SearchedLayer(name, shape, constant, before + macs, is_table)
        found[name] = FloatLayer(layer, constant_bytes(read.constant, program.store))
    return found


def size(program: Program, layers: Mapping[str, FloatLayer]) -> Cost:
    """Return the bytes of all constants."""
    weights = {each.searched.weight: each.bytes for each in layers.values()}
    # A weight that several layers share is stored once: for the first of them.
    first: dict[str, str] = {}
    for name, each in layers.items():
        first.setdefault(each.searched.weight, name)

    def rule(name: str, scheme: LayerScheme) -> float:
        layer = layers[name]
        if first[layer.searched.weight] != name:
            return 0.0
        return layer.bytes if scheme.weight is None else stored_bytes(layer.searched.shape, scheme)

    fixed = read_bytes(program.module, program.store) - sum(weights.values())
    return Cost("size", "B", rule, tuple(layers), fixed)


def stored_bytes(shape: tuple[int, ...], scheme: LayerScheme) -> int:
    """Return the bytes of a weight's packed integers, its scales and what goes with them."""
    assert scheme.weight is not None
    rows = shape[0] if len(shape) > 1 else 1
    packed = rows * row_bytes(prod(shape[1:]), scheme.weight)
    count = prod(weight_scale_shape(shape, scheme.granularity, scheme.group))
    each = 2 if scheme.scales == "f16" else FLOAT_BYTES
    parts = 1 + (scheme.mode == "offset") + (not scheme.symmetric)
    return packed + count * each * parts


def bops(layers: Mapping[str, FloatLayer]) -> Cost:
    """Return bit operations: MACs times both widths."""

    def rule(name: str, scheme: LayerScheme) -> float:
        weight, act = _bits(scheme)
        return layers[name].searched.macs * weight * act

    return Cost("bops", "BOPs", rule, tuple(layers))


def cbops(layers: Mapping[str, FloatLayer]) -> Cost:
    """Return MiCo's CBOPs: MACs times the wider width and the sum of both, for loads."""

    def rule(name: str, scheme: LayerScheme) -> float:
        weight, act = _bits(scheme)
        return layers[name].searched.macs * (max(weight, act) + weight + act)

    return Cost("cbops", "CBOPs", rule, tuple(layers))


def _bits(scheme: LayerScheme) -> tuple[int, int]:
    weight = FLOAT_BITS if scheme.weight is None else scheme.weight.bits
    return weight, FLOAT_BITS if scheme.act is None else scheme.act.bits
