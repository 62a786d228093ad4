"""Scales of groups and their offsets, beside few-bit weights: how they are stored and loaded.

A panel has a row of scales for each of its groups, followed by a row of offsets if there are any,
as float or as f16. Where scales are products (`numerics/super_blocks.py`), a panel begins with the
factors of all its super-blocks, of f16, in such rows; then come the numbers of all groups, a byte
each, which are multiplied by their factor when they are loaded. So groups of 32 numbers take 4.6
bits a weight in place of 6 if they have offsets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Floats
from fewbit.kernels.pack import split_panels
from fewbit.kernels.stored import takes_halves
from fewbit.llvm.types import F16, I8, Vector
from fewbit.numerics.arrays import fits_f16
from fewbit.numerics.super_blocks import SUPER_BLOCK, split_products
from fewbit.toolchain.isa import Isa

ScaleStorage = Literal["f32", "f16", "super"]
"""How scales and offsets of groups are stored; `super` as products, by super-blocks."""
SUPER_GROUPS = (16, 32)
"""How long groups of super-blocks are."""
NARROW: tuple[ScaleStorage, ...] = ("super", "f16")
"""The narrowest first."""


def takes_storage(isa: Isa, storage: ScaleStorage) -> bool:
    """Return whether a processor loads scales that are stored so."""
    return storage == "f32" or takes_halves(isa)


def narrowest_storage(isa: Isa, arrays: Iterable[Floats], depth: int) -> ScaleStorage:
    """Return how scales and offsets, [n, groups] each, take least memory and lose nothing."""
    left: list[ScaleStorage] = [each for each in NARROW if takes_storage(isa, each)]
    for array in arrays:
        left = [each for each in left if _fits(array, each, depth)]
    return left[0] if left else "f32"


def _fits(array: Floats, storage: ScaleStorage, depth: int) -> bool:
    if storage == "super":
        return depth in SUPER_GROUPS and split_products(array, SUPER_BLOCK // depth) is not None
    return fits_f16(array)


@dataclass(frozen=True)
class Groups:
    """What groups of weights have beside their integers, in vectors one after another."""

    shifted: bool = False
    """Whether offsets follow the scales, and weights count from 0."""
    storage: ScaleStorage = "f32"
    blocks: bool = False
    """Whether rows have scales for each group as well."""

    @property
    def name(self) -> str:
        """What the names of functions say of it."""
        kind = "offsets" if self.shifted else "groups"
        storage = "" if self.storage == "f32" else f"_{self.storage}"
        return f"_{kind}{'_blocks' if self.blocks else ''}{storage}"

    @property
    def rows(self) -> int:
        """Rows of numbers that a group has."""
        return 2 if self.shifted else 1

    def pack(self, isa: Isa, scale: Floats, offset: Floats | None, depth: int) -> NDArray[Any]:
        """Return scales and offsets, [n, groups] each, in panels."""
        given = [scale] if offset is None else [scale, offset]
        if self.storage != "super":
            packed = np.concatenate(split_panels(_interleave(given), isa))
            return packed.astype(np.float16) if self.storage == "f16" else packed
        parts = [split_products(each, SUPER_BLOCK // depth) for each in given]
        products = [part for part in parts if part is not None]
        if len(products) != len(given):
            raise UnsupportedError("these scales are no products of a factor and small numbers")
        factors = split_panels(_interleave([part.factors for part in products]), isa)
        numbers = split_panels(_interleave([part.numbers for part in products]), isa)
        return np.concatenate([
            part
            for factor, number in zip(factors, numbers, strict=True)
            for part in (factor.astype(np.float16).view(np.int8), number.astype(np.int8))
        ])  # fmt: skip

    def panel(
        self, f: Function, w_scale: Value, column: Value, count: Value, depth: Value
    ) -> Value:
        """Return the panel from a column on; there are `count` groups of `depth` numbers."""
        cells = column * self.rows
        if self.storage != "super":
            return f.at(w_scale, cells * count, self._element)
        factors = count.shift_right(_places(f, depth))
        return f.at(w_scale, cells * (factors * 2 + count), "i8")

    def locate(
        self, f: Function, panel: Value, group: Value, count: Value, width: Value, depth: Value
    ) -> list[Value]:
        """Return where a group's numbers are in a panel, behind where its factors are, if any."""
        cells = width * self.rows
        if self.storage != "super":
            return [f.at(panel, group * cells, self._element)]
        places = _places(f, depth)
        factors = f.at(panel, group.shift_right(places) * cells, "half")
        numbers = f.at(panel, count.shift_right(places) * cells, "half")
        return [factors, f.at(numbers, group * cells, "i8")]

    def load(self, f: Function, places: list[Value], number: int) -> Value:
        """Return a vector of scales or offsets, as float."""
        *factors, here = places
        if self.storage == "f32":
            return f.load(f.vector, here, number)
        if self.storage == "f16":
            return _load_halves(f, here, number)
        words = f.convert("sext", f.load(Vector(f.isa.lanes, I8), here, number), "i32")
        return f.convert("sitofp", words, "float") * _load_halves(f, factors[0], number)

    @property
    def _element(self) -> str:
        return "half" if self.storage == "f16" else "float"


def _places(f: Function, depth: Value) -> Value:
    """Return by how many places the number of a group is shifted for that of its super-block."""
    return f.select(depth <= min(SUPER_GROUPS), 4, 3)


def _load_halves(f: Function, place: Value, number: int) -> Value:
    return f.convert("fpext", f.load(Vector(f.isa.lanes, F16), place, number, align=2), "float")


def _interleave(arrays: list[Any]) -> Floats:
    """Return [n, groups] arrays as rows of groups, those of one group one after another."""
    rows = np.stack([each.T for each in arrays], axis=1)
    return rows.reshape(-1, rows.shape[-1]).astype(np.float32)
