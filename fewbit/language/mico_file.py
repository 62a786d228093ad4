"""MiCo's version of a llama2.c file: layers of 1, 2, 4 and 8 bits, and what its C program knows.

A header of 256 bytes; norms in float32; a byte for the width of each layer's weight and one for
that of its activations; packed weights, one kind of layer after the other; the embedding, which is
the head too, at 8 bits; and all scales, one for each weight, at the end. Angles of base 10,000 and
an epsilon of 1e-5 are the program's own. There is no tokenizer in the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.language.checkpoint import EMBEDDING, LAYERS, Checkpoint
from fewbit.language.config import DecoderConfig, LayerKind, Rope
from fewbit.language.gguf_file import unpermute
from fewbit.language.pieces import Array
from fewbit.numerics import Quantized, Width
from fewbit.numerics.packing import unpack

MAGIC, VERSION = 0x616B3432, 1
HEADER, ALIGNMENT = 256, 64
"""Bytes of the header, and bytes at which weights begin."""
SIZES = "<Ii7iB"
"""Magic, version, width, hidden width, layers, heads, key heads, vocabulary, context, tied."""
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
NORMS = ("input_layernorm", "post_attention_layernorm")
LAST_NORM = "model.norm.weight"
WIDTHS = (8, 4, 2, 1)
TABLE_BITS = 8
BASE, EPS = 10_000.0, 1e-5


def layer_names(depth: int) -> list[str]:
    """Return the layers in the order of the file."""
    return [f"{LAYERS}.{number}.{part}" for part in PARTS for number in range(depth)]


def norm_names(depth: int) -> list[str]:
    names = [f"{LAYERS}.{number}.{norm}.weight" for norm in NORMS for number in range(depth)]
    return [*names, LAST_NORM]


@dataclass(frozen=True)
class _Packed:
    """Where a weight's integers and its scale are."""

    offset: int
    shape: tuple[int, int]
    width: int
    act: int
    scale: int

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.width // 8


class MicoFile(Checkpoint):
    def __init__(self, path: Path) -> None:
        self.path, self.family, self.text = path, "llama", None
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.config = self._read_config()
            self._packed = self._find_weights()
        except (struct.error, ValueError, IndexError) as error:
            raise UnsupportedError(
                f"this is no file of MiCo's that can be read: {error}",
                place=self.place,
                hint="is it whole? Files of llama2.c itself, in float, are not read",
            ) from None

    def _read_config(self) -> DecoderConfig:
        magic, version, *sizes, tied = struct.unpack_from(SIZES, self._data)
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError("it does not begin as one")
        if min(sizes) < 1 or not tied:
            raise ValueError("its sizes are not possible, or its head is not the embedding")
        width, hidden, depth, heads, kv_heads, vocabulary, context = sizes
        if width % heads or heads % kv_heads or width % 32 or hidden % 32:
            raise ValueError("its sizes do not fit together")
        kind = LayerKind(Rope(BASE, width // heads))
        return DecoderConfig(
            vocabulary, width, hidden, heads, kv_heads, width // heads, context,
            (kind,) * depth, EPS, tied=True,
        )  # fmt: skip

    @cached_property
    def _norms(self) -> dict[str, int]:
        """Where norms begin."""
        names = norm_names(len(self.config.layers))
        return {name: HEADER + 4 * self.config.width * i for i, name in enumerate(names)}

    def _find_weights(self) -> dict[str, _Packed]:
        config, names = self.config, layer_names(len(self.config.layers))
        offset = HEADER + 4 * config.width * len(self._norms)
        widths = self._data[offset : offset + 2 * len(names)]
        offset += len(widths) + self._data[offset + len(widths)]
        kinds = [(name, widths[2 * i], widths[2 * i + 1]) for i, name in enumerate(names)]
        kinds.append((EMBEDDING.removesuffix(".weight"), TABLE_BITS, TABLE_BITS))
        scales = len(self._data) - 4 * len(kinds)
        found: dict[str, _Packed] = {}
        for number, (name, width, act) in enumerate(kinds):
            if width not in WIDTHS or act not in WIDTHS:
                raise ValueError(f"'{name}' has {width} bits, and its activations {act}")
            found[name] = _Packed(offset, self._shape(name), width, act, scales + 4 * number)
            offset += found[name].nbytes
        if offset != scales:
            raise ValueError(f"its weights end at byte {offset}, and its scales begin at {scales}")
        return found

    def _shape(self, layer: str) -> tuple[int, int]:
        config = self.config
        keys = config.kv_heads * config.head_width
        return {
            "k_proj": (keys, config.width),
            "v_proj": (keys, config.width),
            "gate_proj": (config.hidden, config.width),
            "up_proj": (config.hidden, config.width),
            "down_proj": (config.width, config.hidden),
            "embed_tokens": (config.vocabulary, config.width),
        }.get(layer.rpartition(".")[2], (config.width, config.width))

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return dict.fromkeys(self._norms, (self.config.width,)) | {
            f"{name}.weight": packed.shape for name, packed in self._packed.items()
        }

    def read(self, key: str) -> Array:
        if key in self._norms:
            return np.frombuffer(self._data, "<f4", self.config.width, self._norms[key])
        return self._weight(key.removesuffix(".weight")).dequantize()

    def has_integers(self, key: str) -> bool:
        return key.removesuffix(".weight") in self._packed

    def read_integers(self, key: str) -> Quantized:
        return self._weight(key.removesuffix(".weight"))

    def act_bits(self, layer: str) -> int | None:
        return TABLE_BITS if layer not in self._packed else self._packed[layer].act

    def _weight(self, layer: str) -> Quantized:
        packed = self._packed[layer]
        data = np.frombuffer(self._data, np.uint8, packed.nbytes, packed.offset)
        width = Width.of(packed.width)
        integers = unpack(data.reshape(packed.shape[0], -1), width, packed.shape[1])
        heads = {"q_proj": self.config.heads, "k_proj": self.config.kv_heads}
        rotated = heads.get(layer.rpartition(".")[2])
        values = integers if rotated is None else unpermute(integers, rotated)
        scale = np.frombuffer(self._data, "<f4", 1, packed.scale).reshape(())
        return Quantized(np.ascontiguousarray(values), np.array(scale), None, width)


def is_mico_file(path: Path) -> bool:
    """Return whether a file begins as MiCo's do; llama2.c's own have another version."""
    try:
        with path.open("rb") as file:
            return file.read(8) == struct.pack("<Ii", MAGIC, VERSION)
    except OSError:
        return False
