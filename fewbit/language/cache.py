"""How a decoder keeps keys and values of tokens: as floats, or as integers of 8 or 4 bits.

Buffers have a fixed length, the context, and a call writes its tokens into them. Keys are kept
transposed, in blocks of 64 tokens: a matmul reads them as they are, where others would be
transposed in every step. What is kept narrower than float32 is widened in the matmul's registers.

Integers have a scale for each token, in every group of channels; so scores are multiplied by the
scales of keys behind the matmul, and weights by those of values before it: neither is ever
dequantized. Integers of 4 bits share a byte with those half a head away, and a matmul reads one
half of all bytes: two matmuls of half the depth, or width, in place of one. Keys of 4 bits have
offsets, too, because what they lose is most of what a cache loses: tokens have much in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import unflatten
from fewbit.language.torch_ops import high_half, join_halves, low_half
from fewbit.numerics.formulas import EPS
from fewbit.quant.cache_scheme import CacheScheme

BLOCK = 64
"""Tokens of a block of keys: as many as the matmul of the widest processors takes at once."""
GROUP = 32
"""Channels that share a scale at 4 bits, where heads are that many twice, or a multiple of it."""
LEAST = float(EPS)


class Kept(NamedTuple):
    """Where a call keeps its tokens, and what it reads of those kept."""

    positions: Tensor
    """Where values of the tokens are kept."""
    blocks: Tensor
    """The blocks in which keys of the tokens are kept."""
    columns: Tensor
    """Where in their blocks."""
    sequences: Tensor | None
    """Which sequence each token is of; None where there is one."""
    read_blocks: int | Tensor
    """A number of first ones, or in a window their places."""
    read_tokens: int
    """How many tokens are in these blocks."""
    wanted: int | Tensor
    """Which of these are wanted."""
    values: int | Tensor
    """Which values are read."""


class Shape(NamedTuple):
    sequences: int
    heads: int
    width: int
    """Channels of a head."""
    blocks: int


Read = Callable[[Tensor, Kept], Tensor]


@dataclass(frozen=True)
class Cache(ABC):
    """A way of keeping keys and values, in buffers of the module that attends to them."""

    shape: Shape

    @abstractmethod
    def allocate(self) -> dict[str, Tensor]:
        """Return the buffers by their names, empty."""

    @abstractmethod
    def write(self, buffers: nn.Module, k: Tensor, v: Tensor, kept: Kept) -> None:
        """Keep keys and values, [sequences, heads, tokens, width]."""

    @abstractmethod
    def scores(self, buffers: nn.Module, q: Tensor, kept: Kept) -> Tensor:
        """Return q · k, [heads, rows, tokens], of queries [heads, rows, width]."""

    @abstractmethod
    def weigh(self, buffers: nn.Module, weights: Tensor, kept: Kept) -> Tensor:
        """Return the sums of values by weights, [heads, rows, width]."""

    def keys(self, parts: int, width: int, dtype: torch.dtype) -> Tensor:
        sequences, heads, _, blocks = self.shape
        return torch.zeros(sequences, heads * parts, blocks, width, BLOCK, dtype=dtype)

    def values(self, parts: int, width: int, dtype: torch.dtype) -> Tensor:
        sequences, heads, _, blocks = self.shape
        return torch.zeros(sequences, heads * parts, blocks * BLOCK, width, dtype=dtype)

    def scales(self, parts: int) -> Tensor:
        sequences, heads, _, blocks = self.shape
        return torch.zeros(sequences, heads * parts, blocks * BLOCK, dtype=torch.float16)


def make_cache(scheme: CacheScheme, shape: Shape) -> Cache:
    """Return what keeps keys and values as a scheme says."""
    kinds = {"f32": FloatCache, "f16": HalfCache, "q8": ByteCache, "q4": HalfByteCache}
    return kinds[scheme.kind](shape)


class FloatCache(Cache):
    dtype = torch.float32

    def allocate(self) -> dict[str, Tensor]:
        width = self.shape.width
        return {
            "keys": self.keys(1, width, self.dtype),
            "values": self.values(1, width, self.dtype),
        }

    def write(self, buffers: nn.Module, k: Tensor, v: Tensor, kept: Kept) -> None:
        write_keys(buffers.get_buffer("keys"), k.to(self.dtype), kept)
        write_tokens(buffers.get_buffer("values"), v.to(self.dtype), kept)

    def scores(self, buffers: nn.Module, q: Tensor, kept: Kept) -> Tensor:
        return multiply_keys(q, read_keys(buffers.get_buffer("keys"), kept).float(), kept)

    def weigh(self, buffers: nn.Module, weights: Tensor, kept: Kept) -> Tensor:
        return torch.bmm(weights, read_tokens(buffers.get_buffer("values"), kept).float())


class HalfCache(FloatCache):
    dtype = torch.float16


class ByteCache(Cache):
    """Integers of 8 bits, and a scale for each token and head."""

    def allocate(self) -> dict[str, Tensor]:
        width = self.shape.width
        return {
            "keys": self.keys(1, width, torch.int8),
            "key_scales": self.scales(1),
            "values": self.values(1, width, torch.int8),
            "value_scales": self.scales(1),
        }

    def write(self, buffers: nn.Module, k: Tensor, v: Tensor, kept: Kept) -> None:
        for name, x, write in (("key", k, write_keys), ("value", v, write_tokens)):
            integers, scales = quantize(x, 8)
            write(buffers.get_buffer(f"{name}s"), integers, kept)
            write_tokens(buffers.get_buffer(f"{name}_scales"), scales, kept)

    def scores(self, buffers: nn.Module, q: Tensor, kept: Kept) -> Tensor:
        products = multiply_keys(q, read_keys(buffers.get_buffer("keys"), kept).float(), kept)
        scales = read_tokens(buffers.get_buffer("key_scales"), kept).float()
        return products * scales.unsqueeze(1)

    def weigh(self, buffers: nn.Module, weights: Tensor, kept: Kept) -> Tensor:
        scales = read_tokens(buffers.get_buffer("value_scales"), kept).float()
        values = read_tokens(buffers.get_buffer("values"), kept).float()
        return torch.bmm(weights * scales.unsqueeze(1), values)


class HalfByteCache(Cache):
    """Integers of 4 bits, and a scale for each token and group of channels.

    A byte has a channel of the first half of a head, and the one as far in its second half.
    """

    @property
    def pairs(self) -> int:
        """Groups of each half of a head."""
        width = self.shape.width
        return width // (2 * GROUP) if width % (2 * GROUP) == 0 else 1

    @property
    def group(self) -> int:
        return self.shape.width // (2 * self.pairs)

    def allocate(self) -> dict[str, Tensor]:
        pairs, group = self.pairs, self.group
        return {
            "keys": self.keys(pairs, group, torch.int8),
            "key_scales": self.scales(2 * pairs),
            "key_offsets": self.scales(2 * pairs),
            "values": self.values(pairs, group, torch.int8),
            "value_scales": self.scales(2 * pairs),
        }

    def write(self, buffers: nn.Module, k: Tensor, v: Tensor, kept: Kept) -> None:
        integers, scales, offsets = quantize_with_offset(self._group(k))
        write_keys(buffers.get_buffer("keys"), self._join(integers), kept)
        write_tokens(buffers.get_buffer("key_scales"), scales.flatten(1, 3), kept)
        write_tokens(buffers.get_buffer("key_offsets"), offsets.flatten(1, 3), kept)
        integers, scales = quantize(self._group(v), 4)
        write_tokens(buffers.get_buffer("values"), self._join(integers), kept)
        write_tokens(buffers.get_buffer("value_scales"), scales.flatten(1, 3), kept)

    def scores(self, buffers: nn.Module, q: Tensor, kept: Kept) -> Tensor:
        keys = buffers.get_buffer("keys")
        queries = unflatten(q, -1, (2 * self.pairs, self.group)).unbind(2)
        products: list[Tensor] = []
        for group, query in enumerate(queries):
            product = multiply_keys(query, self._read(keys, group, read_keys, kept), kept)
            scales, offsets = (
                self._take(buffers, f"key_{name}", group, kept) for name in ("scales", "offsets")
            )
            products.append(product * scales + query.sum(-1, keepdim=True) * offsets)
        return reduce(torch.add, products)

    def weigh(self, buffers: nn.Module, weights: Tensor, kept: Kept) -> Tensor:
        values = buffers.get_buffer("values")
        sums = [
            torch.bmm(
                weights * self._take(buffers, "value_scales", group, kept),
                self._read(values, group, read_tokens, kept),
            )
            for group in range(2 * self.pairs)
        ]
        return torch.cat(sums, dim=-1)

    def _read(self, buffer: Tensor, group: int, read: Read, kept: Kept) -> Tensor:
        """Return the channels of a group, as float: a half of bytes."""
        part, pair = divmod(group, self.pairs)
        own = unflatten(buffer, 1, (-1, self.pairs))[:, :, pair]
        return (high_half if part else low_half)(read(own, kept))

    def _group(self, x: Tensor) -> Tensor:
        """Return channels in groups, [sequences, heads, 2, pairs, tokens, group]."""
        return unflatten(x, -1, (2, self.pairs, self.group)).permute(0, 1, 3, 4, 2, 5)

    def _join(self, integers: Tensor) -> Tensor:
        """Return bytes, [sequences, heads · pairs, tokens, group]."""
        low, high = integers.unbind(2)
        return join_halves(low, high).flatten(1, 2)

    def _take(self, buffers: nn.Module, name: str, group: int, kept: Kept) -> Tensor:
        """Return scales or offsets of a group, [heads, 1, tokens]."""
        own = unflatten(buffers.get_buffer(name), 1, (-1, 2 * self.pairs))[:, :, group]
        return read_tokens(own, kept).float().unsqueeze(1)


def quantize(x: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return integers, and scales of f16 for all but the last dimension."""
    most = 2 ** (bits - 1) - 1
    magnitude = x.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    scales = (magnitude * (1 / most)).to(torch.float16)
    return round_steps(x / scales.float(), bits), scales.squeeze(-1)


def quantize_with_offset(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return integers of 4 bits, scales, and what an integer of 0 stands for, both of f16."""
    least = x.amin(-1, keepdim=True)
    extent = (x.amax(-1, keepdim=True) - least).clamp_min(LEAST)
    scales = (extent * (1 / 15)).to(torch.float16)
    offsets = (least + 8 * scales.float()).to(torch.float16)
    integers = round_steps((x - offsets.float()) / scales.float(), 4)
    return integers, scales.squeeze(-1), offsets.squeeze(-1)


def round_steps(steps: Tensor, bits: int) -> Tensor:
    """Return the nearest integers of so many bits, as bytes."""
    most = 2 ** (bits - 1) - 1
    return steps.round().clamp(-most - 1, most).to(torch.int8)


def write_keys(buffer: Tensor, k: Tensor, kept: Kept) -> None:
    """Write keys, [sequences, heads, tokens, width], into their blocks."""
    if kept.sequences is None:
        buffer[:, :, kept.blocks, :, kept.columns] = k.permute(2, 0, 1, 3)
    else:
        buffer[kept.sequences, :, kept.blocks, :, kept.columns] = k.transpose(1, 2).flatten(0, 1)


def write_tokens(buffer: Tensor, x: Tensor, kept: Kept) -> None:
    """Write what tokens have, [sequences, heads, tokens, ...], at their positions."""
    if kept.sequences is None:
        buffer.index_copy_(2, kept.positions, x)
    else:
        buffer[kept.sequences, :, kept.positions] = x.transpose(1, 2).flatten(0, 1)


def read_keys(buffer: Tensor, kept: Kept) -> Tensor:
    """Return the blocks that are read, [heads, blocks, width, 64], of all sequences."""
    return take(join_sequences(buffer), 1, kept.read_blocks)


def read_tokens(buffer: Tensor, kept: Kept) -> Tensor:
    """Return what is read of tokens, [heads, tokens, ...], of all sequences."""
    return take(join_sequences(buffer), 1, kept.values)


def join_sequences(buffer: Tensor) -> Tensor:
    """Return the heads of all sequences in one dimension."""
    return buffer[0] if buffer.shape[0] == 1 else buffer.flatten(0, 1)


def multiply_keys(q: Tensor, keys: Tensor, kept: Kept) -> Tensor:
    """Return the products of queries and keys in blocks, [heads, rows, tokens]."""
    products = torch.einsum("hrd,hbdk->hrbk", q, keys)
    return take(products.reshape(*q.shape[:2], kept.read_tokens), 2, kept.wanted)


def take(x: Tensor, axis: int, which: int | Tensor) -> Tensor:
    """Return the first so many along an axis, or those at the places that are given."""
    if isinstance(which, Tensor):
        return x.index_select(axis, which)
    return x.narrow(axis, 0, which)
