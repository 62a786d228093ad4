"""How GPTQ and AWQ checkpoints pack integers into 32-bit words.

GPTQ packs a weight along its inputs, and zero points along the outputs: a stream of fields, least
significant bits first, which for 3 bits runs on from word to word. AWQ packs both along the
outputs, eight fields of 4 bits in a word, in an order of its own. A layer's width and group size
follow from shapes, so no configuration file can contradict them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, UnsupportedError
from fewbit.numerics import Quantized
from fewbit.quant.given import given_weight

Array = npt.NDArray[Any]

WORD = 32
_AWQ_BITS = 4
_AWQ_PLACES = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which of a word's eight outputs each field holds."""


@dataclass(frozen=True)
class PackedLayer:
    """The tensors of one layer: K inputs, N outputs, G groups."""

    qweight: Array
    qzeros: Array
    scales: Array
    g_idx: Array | None = None


def read_gptq(layer: PackedLayer, inputs: int, *, stored_zero: int) -> Quantized:
    """The weight [N, K] of a GPTQ layer. A stored zero point of 0 means `stored_zero`."""
    rows, outputs = _matrix(layer.qweight, "qweight")
    groups = _groups(layer, outputs, inputs)
    bits, left = divmod(rows * WORD, inputs)
    if left or not 2 <= bits <= 8:
        raise ShapeError(f"a qweight of {rows} rows is no weight of {inputs} inputs")
    _check_shape(layer.qzeros, (groups, -(-outputs * bits // WORD)), "qzeros")
    _check_order(layer.g_idx, inputs, groups)
    values = unpack_words(layer.qweight.T, bits)[:, :inputs]
    zeros = unpack_words(layer.qzeros, bits)[:, :outputs].astype(np.int32) + stored_zero
    return given_weight(values, layer.scales.T, zeros.T, width=bits, signed=False)


def read_awq(layer: PackedLayer, inputs: int) -> Quantized:
    """The weight [N, K] of an AWQ layer in the 'gemm' layout."""
    rows, words = _matrix(layer.qweight, "qweight")
    outputs = words * WORD // _AWQ_BITS
    if rows != inputs:
        raise ShapeError(
            f"an AWQ qweight of {rows} rows is no weight of {inputs} inputs",
            hint="the layout must be 'gemm', AutoAWQ's default",
        )
    groups = _groups(layer, outputs, inputs)
    _check_shape(layer.qzeros, (groups, words), "qzeros")
    values, zeros = (_in_places(unpack_words(x, _AWQ_BITS)) for x in (layer.qweight, layer.qzeros))
    return given_weight(values.T, layer.scales.T, zeros.T, width=_AWQ_BITS, signed=False)


def unpack_words(words: Array, bits: int) -> npt.NDArray[np.uint8]:
    """The fields of each row of 32-bit words, least significant bits first."""
    octets = np.ascontiguousarray(words).astype("<i4", copy=False).view(np.uint8)
    stream = np.unpackbits(octets, axis=-1, bitorder="little")
    count = stream.shape[-1] // bits
    fields = stream[:, : count * bits].reshape(len(stream), count, bits)
    return np.packbits(fields, axis=-1, bitorder="little")[..., 0]


def _in_places(fields: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    ordered = np.empty_like(fields)
    for field, place in enumerate(_AWQ_PLACES):
        ordered[:, place::8] = fields[:, field::8]
    return ordered


def _matrix(array: Array, what: str) -> tuple[int, int]:
    if array.ndim != 2 or array.dtype != np.int32 or 0 in array.shape:
        raise ShapeError(f"{what} is {array.dtype} {array.shape}, not a matrix of int32")
    return array.shape[0], array.shape[1]


def _check_shape(array: Array, shape: tuple[int, int], what: str) -> None:
    if _matrix(array, what) != shape:
        raise ShapeError(f"{what} has shape {array.shape}, and {shape} fits the other tensors")


def _groups(layer: PackedLayer, outputs: int, inputs: int) -> int:
    shape = layer.scales.shape
    if len(shape) != 2 or shape[1] != outputs or shape[0] < 1 or inputs % shape[0]:
        raise ShapeError(
            f"scales of shape {shape} do not fit {outputs} outputs and {inputs} inputs",
            hint="there is a row of scales for each group, and groups of one size",
        )
    return shape[0]


def _check_order(g_idx: Array | None, inputs: int, groups: int) -> None:
    if g_idx is None:
        return
    if g_idx.shape != (inputs,):
        raise ShapeError(f"g_idx has shape {g_idx.shape}, and the layer has {inputs} inputs")
    if np.array_equal(g_idx, np.arange(inputs) // (inputs // groups)):
        return
    raise UnsupportedError(
        "inputs of this layer are in groups out of order (act-order)",
        hint="quantize with desc_act=False: a group here is a run of inputs",
    )
