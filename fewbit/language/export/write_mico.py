"""A checkpoint as MiCo's version of a llama2.c file, which its C program is built with.

What that program does not compute is refused. `mico_file` describes the file, and reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from fewbit.base.files import PathLike, replacing_file
from fewbit.base.progress import progress
from fewbit.errors import Place, UnsupportedError, UsageError
from fewbit.language.checkpoint import EMBEDDING, Checkpoint, OwnWeights, open_weights
from fewbit.language.config import DecoderConfig, Rope
from fewbit.language.export.family import check_family, interleave_halves, refuse
from fewbit.language.mico_file import (
    ALIGNMENT,
    BASE,
    EPS,
    HEADER,
    MAGIC,
    SIZES,
    TABLE_BITS,
    VERSION,
    WIDTHS,
    layer_names,
    norm_names,
)
from fewbit.numerics import Quantized
from fewbit.numerics.packing import pack
from fewbit.program.store import WeightStore
from fewbit.quant.recipe import LayerScheme, Recipe, RecipeLike

TABLE = LayerScheme.of(f"w{TABLE_BITS}a{TABLE_BITS}-tensor")
"""How the embedding is quantized, which is the head."""
ROW = 32
"""What rows are multiples of: MiCo's writer pads others, and its program reads them without."""


def write_mico(checkpoint: Checkpoint, path: PathLike, recipe: RecipeLike, context: int) -> None:
    """Write the file, whole or not at all, with the widths of a recipe; for so many tokens."""
    config = checkpoint.config
    _check(checkpoint, check_family(checkpoint))
    names = layer_names(len(config.layers))
    schemes = Recipe.of(recipe).resolve(names)
    for name, scheme in schemes.items():
        _check_scheme(name, scheme)
    weights = open_weights(checkpoint)
    given = OwnWeights(checkpoint)

    def quantize(name: str, key: str, scheme: LayerScheme) -> Quantized:
        """Return the integers of the checkpoint, where it has such, or round the weight."""
        own = given.get(name)
        if own is not None and own.width == scheme.weight and own.scale.shape == ():
            return own
        return scheme.quantize_weight(weights[key])

    scales: list[bytes] = []
    with replacing_file(path) as file, progress("Writing weights", total=len(names) + 1) as step:
        for part in _beginning(config, context, weights, schemes):
            file.write(part)
        for name in names:
            layer = quantize(name, f"{name}.weight", schemes[name])
            file.write(_pack(layer, _rotated_heads(config, name)))
            scales.append(layer.scale.astype("<f4").tobytes())
            step()
        table = quantize("lm_head", EMBEDDING, TABLE)
        file.write(_pack(table, None))
        scales.append(table.scale.astype("<f4").tobytes())
        file.write(b"".join(scales))
        step()


def _beginning(
    config: DecoderConfig, context: int, weights: WeightStore, schemes: dict[str, LayerScheme]
) -> Iterator[bytes]:
    """Yield all that comes before the weights."""
    sizes = (config.width, config.hidden, len(config.layers), config.heads, config.kv_heads)
    header = struct.pack(SIZES, MAGIC, VERSION, *sizes, config.vocabulary, context, config.tied)
    yield header.ljust(HEADER, b"\0")
    norms = norm_names(len(config.layers))
    for name in norms:
        yield weights[name].astype("<f4").tobytes()
    widths = bytes(width for scheme in schemes.values() for width in _widths(scheme))
    yield widths
    end = HEADER + sum(weights.nbytes(name) for name in norms) + len(widths)
    # The first byte says how many there are, so there is at least one.
    filled = ALIGNMENT - end % ALIGNMENT
    yield bytes([filled]).ljust(filled, b"\0")


def _rotated_heads(config: DecoderConfig, name: str) -> int | None:
    """Return how many heads a layer has whose rows change places; None for all others."""
    return {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.rpartition(".")[2])


def _pack(weight: Quantized, heads: int | None) -> bytes:
    values = weight.values if heads is None else interleave_halves(weight.values, heads)
    return pack(values, weight.width).tobytes()


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
