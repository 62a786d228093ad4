"""A checkpoint as MiCo's version of a llama2.c file, which its C program is built with.

A header of 256 bytes; norms in float32; a byte for the width of each layer's weight and one for
that of its activations; packed weights, one kind of layer after the other; the embedding, which is
the head too, at 8 bits; and all scales, one for each weight, at the end. What that program does not
compute is refused: it has angles of base 10,000, an epsilon of 1e-5 and a tied head, and it takes
rows without the padding of MiCo's writer, so that rows must be multiples of 32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from fewbit.base.files import PathLike, replacing_file
from fewbit.base.progress import progress
from fewbit.errors import Place, UnsupportedError, UsageError
from fewbit.language.checkpoint import EMBEDDING, LAYERS, Checkpoint, open_weights
from fewbit.language.config import DecoderConfig, Rope
from fewbit.language.export.family import check_family, interleave_halves, refuse
from fewbit.numerics import quantize_weight
from fewbit.numerics.packing import pack
from fewbit.program.store import WeightStore
from fewbit.quant.recipe import LayerScheme, Recipe, RecipeLike

MAGIC, VERSION = 0x616B3432, 1
HEADER, ALIGNMENT, ROW = 256, 64, 32
"""Bytes of the header, bytes at which weights begin, and what rows are multiples of."""
PARTS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.down_proj",
    "mlp.up_proj",
)
"""The layers of a decoder layer, in the file's order: wq, wk, wv, wo, w1, w2, w3."""
WIDTHS = (8, 4, 2, 1)
BASE, EPS = 10_000.0, 1e-5


def write_mico(checkpoint: Checkpoint, path: PathLike, recipe: RecipeLike, context: int) -> None:
    """Write the file, whole or not at all, with the widths of a recipe; for so many tokens."""
    config = checkpoint.config
    _check(checkpoint, check_family(checkpoint))
    depth = len(config.layers)
    names = [f"{LAYERS}.{number}.{part}" for part in PARTS for number in range(depth)]
    schemes = Recipe.of(recipe).resolve(names)
    for name, scheme in schemes.items():
        _check_scheme(name, scheme)
    weights = open_weights(checkpoint)
    scales: list[bytes] = []
    with replacing_file(path) as file, progress("Writing weights", total=len(names) + 1) as step:
        for part in _beginning(config, context, weights, schemes):
            file.write(part)
        for name in names:
            scales.append(_write_layer(file, config, weights, name, schemes[name]))
            step()
        embedding = quantize_weight(weights[EMBEDDING], 8, granularity="tensor")
        file.write(embedding.values.tobytes())
        file.write(b"".join([*scales, _float(embedding.scale)]))
        step()


def _beginning(
    config: DecoderConfig, context: int, weights: WeightStore, schemes: dict[str, LayerScheme]
) -> Iterator[bytes]:
    """Yield all that comes before the weights."""
    sizes = (config.width, config.hidden, len(config.layers), config.heads, config.kv_heads)
    header = struct.pack("<Ii7iB", MAGIC, VERSION, *sizes, config.vocabulary, context, config.tied)
    yield header.ljust(HEADER, b"\0")
    depth = range(len(config.layers))
    norms = [f"{LAYERS}.{number}.input_layernorm.weight" for number in depth]
    norms += [f"{LAYERS}.{number}.post_attention_layernorm.weight" for number in depth]
    norms.append("model.norm.weight")
    for name in norms:
        yield weights[name].astype("<f4").tobytes()
    widths = bytes(width for scheme in schemes.values() for width in _widths(scheme))
    yield widths
    end = HEADER + sum(weights.nbytes(name) for name in norms) + len(widths)
    # The first byte says how many there are, so there is at least one.
    filled = ALIGNMENT - end % ALIGNMENT
    yield bytes([filled]).ljust(filled, b"\0")


def _write_layer(
    file: BinaryIO, config: DecoderConfig, weights: WeightStore, name: str, scheme: LayerScheme
) -> bytes:
    """Write the integers of a layer, and return its scale."""
    weight = weights[f"{name}.weight"]
    heads = {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.rpartition(".")[2])
    if heads is not None:
        weight = interleave_halves(weight, heads)
    quantized = scheme.quantize_weight(weight)
    file.write(pack(quantized.values, quantized.width).tobytes())
    return _float(quantized.scale)


def _float(scale: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> bytes:
    return scale.astype("<f4").tobytes()


def _widths(scheme: LayerScheme) -> tuple[int, int]:
    """Return the file's two numbers of a layer; ternary weights lie in two bits."""
    assert scheme.weight is not None
    assert scheme.act is not None
    return scheme.weight.bits, scheme.act.bits


def _check(checkpoint: Checkpoint, rope: Rope) -> None:
    config = checkpoint.config
    hint = "MiCo's program is for LLaMa as llama2.c has it; GGUF takes more, -o model.gguf"
    for is_so, what in (
        (not config.tied, "has a head that is not its embedding"),
        (config.qkv_bias or config.output_bias, "has biases"),
        (config.query_key_norm, "normalizes queries and keys"),
        (config.head_width * config.heads != config.width, "has heads of another width"),
        (rope.base != BASE or bool(rope.divisors), f"has other angles than those of base {BASE:g}"),
        (np.float32(config.eps) != np.float32(EPS), f"has the epsilon {config.eps:g}"),
        (
            bool(config.width % ROW or config.hidden % ROW),
            f"has rows that are no multiples of {ROW}",
        ),
    ):
        if is_so:
            raise refuse(checkpoint, what, hint)


def _check_scheme(name: str, scheme: LayerScheme) -> None:
    place = Place(layer=name)
    for width, what in ((scheme.weight, "weight"), (scheme.act, "activations")):
        if width is None or width.bits not in WIDTHS:
            raise UnsupportedError(
                f"the {what} of '{scheme}' cannot be written: the file has 1, 2, 4 and 8 bits",
                place=place,
                hint="write w8a8-tensor, or another width",
            )
    plain = LayerScheme(weight=scheme.weight, act=scheme.act, granularity="tensor")
    if scheme != plain:
        raise UsageError(
            f"the recipe says '{scheme}', and the file has one scale for each weight",
            place=place,
            hint=f"write '{plain}'",
        )
