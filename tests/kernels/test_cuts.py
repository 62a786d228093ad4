"""Rules of cutting: what a kernel's instructions compute is what they say of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fewbit.kernels import Isa
from fewbit.kernels.conv2d import Blocks
from fewbit.kernels.cuts import Arithmetic, Known, Number
from fewbit.kernels.emit import Function
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.columns import columns_suit
from fewbit.kernels.integer.conv2d import Blocks as IntegerBlocks
from fewbit.kernels.integer.strip import Strip, are_taken
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.matmul import depth_of_block
from fewbit.kernels.pack import Panels
from fewbit.kernels.sweep import Heights, highest_tile, share
from tests.kernels.machine import address, load

Rule = Callable[[Arithmetic[Any], list[Any]], list[Any]]
IMAGE = [2, 17, 23, 5, 5, 17, 23, 40, 40, 3, 3, 1, 1, 1, 1, 1, 1]
APART = [1, 9, 9, 300, 320, 4, 4, 100, 100, 3, 5, 2, 2, 0, 0, 1, 2]
DEEP = [1, 3, 3, 9000, 9000, 3, 3, 8, 8, 1, 2, 1, 1, 0, 0, 1, 1]


@dataclass(frozen=True)
class Cut(Kernel):
    """Writes what a rule gives for so many sizes."""

    rule: Rule
    count: int

    @property
    def symbol(self) -> str:
        return "cut"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr sizes, ptr results", public=True)
        sizes, results = f.parameters
        given = [f.load("i64", sizes, i) for i in range(self.count)]
        for i, value in enumerate(self.rule(f, given)):
            f.store(value, results, i)
        return f


def _conv2d(f: Arithmetic[Any], s: list[Any]) -> list[Any]:
    cut = Blocks.of(f, Sizes(*s))
    return [cut.kw, cut.c, cut.taps, cut.depth_step, cut.tap_step, cut.rows]


def _integer_conv2d(f: Arithmetic[Any], s: list[Any]) -> list[Any]:
    sizes = Sizes(*s)
    cut = IntegerBlocks.of(f, sizes, 8, f.integer(3), sizes.oh * sizes.ow)
    return [cut.taps, cut.runs, cut.depth_step, cut.tap_step, cut.rows]


def _strip(f: Arithmetic[Any], s: list[Any]) -> list[Any]:
    sizes = Sizes(*s)
    strip = Strip.at(f, sizes, f.integer(4), sizes.oh * sizes.ow)
    return [strip.rows, strip.count, strip.pitch, strip.step]


def _conditions(f: Arithmetic[Any], s: list[Any]) -> list[Any]:
    sizes = Sizes(*s)
    asked = (are_taken(f, sizes.kh, sizes.kw, sizes.c), columns_suit(f, sizes))
    return [f.select(condition, 1, 0) for condition in asked]


def _matrix(f: Arithmetic[Any], s: list[Any]) -> list[Any]:
    m, n, k, thread, threads = s
    panels = Panels.of(f, n)
    tiles = Heights.of(f, m, highest_tile(f, panels.at(f, thread)[1], 10))
    rest = [tiles.tiles, tiles.row(f, thread), tiles.height(f, thread), depth_of_block(f, m, k)]
    return [*share(f, m, n, k, thread, threads), panels.count, *panels.at(f, thread), *rest]


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        *((rule, sizes) for rule in (_conv2d, _integer_conv2d) for sizes in (IMAGE, APART, DEEP)),
        (_strip, IMAGE),
        *((_conditions, sizes) for sizes in (IMAGE, APART, DEEP)),
        (_matrix, [1, 256, 64, 1, 2]),
        (_matrix, [65, 192, 4096, 0, 2]),
        (_matrix, [101, 80, 700, 2, 3]),
    ],
)
def test_kernels_and_numbers_agree(rule: Rule, sizes: list[int], isa: Isa) -> None:
    expected = [int(size) for size in rule(Known(isa), [Number(n) for n in sizes])]
    call = load(Cut(isa, rule, len(sizes)).ir(), isa, {"cut": "pp"})["cut"]
    results = np.full(len(expected), -1, np.int64)
    call(address(np.array(sizes, np.int64)), address(results))
    assert list(results) == expected
