"""Matmuls: LOOP_WS for each tile, or the commands one by one, in either dataflow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import (
    ACCUMULATE,
    ACCUMULATOR,
    FULL,
    GARBAGE,
    Command,
    Pointer,
)
from fewbit.simulators.gemmini.commands import Dataflow
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.loop_matmul import matmul_commands
from fewbit.targets.gemmini.streams.output import BIAS, I32, WEIGHT, Output, X, Y, only_if
from fewbit.targets.gemmini.tiler import parts, tile_matmul

Style = Literal["loop", "explicit", "output-stationary"]


@dataclass(frozen=True)
class Matmul:
    """y = x · weight + bias: m x k by k x n, either of them stored transposed."""

    m: int
    n: int
    k: int
    bias: bool = False
    """Whether there is one, of n i32."""
    output: Output = I32
    x_transposed: bool = False
    weight_transposed: bool = False

    @property
    def x_stride(self) -> int:
        return self.m if self.x_transposed else self.k

    @property
    def weight_stride(self) -> int:
        return self.k if self.weight_transposed else self.n

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k


@dataclass(frozen=True)
class _Tile:
    """Part of a matmul: where it begins, and its sizes, in elements."""

    row: int
    col: int
    inner: int
    rows: int
    cols: int
    depth: int


def matmul(
    problem: Matmul, hardware: Hardware | None = None, style: Style = "loop"
) -> list[Command]:
    """Return the commands of a matmul."""
    hardware = hardware or Hardware()
    commands: list[Command] = list(_configuration(problem, style))
    for tile in _tiles(problem, hardware):
        if style == "output-stationary":
            commands += _output_stationary(problem, tile, hardware)
            continue
        loop = _loop(problem, tile, hardware)
        if style == "loop":
            commands += loop
        else:
            given = {type(each): each for each in loop[:-1]}
            op = loop[-1]
            assert isinstance(op, c.LoopWs)
            commands += matmul_commands(op, given, hardware)
    return commands


def _configuration(problem: Matmul, style: Style) -> Iterator[Command]:
    stationary = style == "output-stationary"
    yield c.ConfigExecute(
        dataflow=Dataflow.OUTPUT_STATIONARY if stationary else Dataflow.WEIGHT_STATIONARY,
        a_transpose=problem.x_transposed,
        b_transpose=problem.weight_transposed,
    )
    yield problem.output.config(problem.n)
    yield c.ConfigLoad(id=0, stride=problem.x_stride)
    yield c.ConfigLoad(id=1, stride=problem.weight_stride)
    yield c.ConfigLoad(id=2, stride=0)


def _tiles(problem: Matmul, hardware: Hardware) -> Iterator[_Tile]:
    tile = tile_matmul(problem.m, problem.n, problem.k, hardware)
    dim = hardware.dim
    for row, rows in parts(problem.m, tile.i * dim):
        for col, cols in parts(problem.n, tile.j * dim):
            for inner, depth in parts(problem.k, tile.k * dim):
                yield _Tile(row, col, inner, rows, cols, depth)


def _places(problem: Matmul, tile: _Tile) -> tuple[Pointer, Pointer, Pointer]:
    """Return pointers to the tile's operands and result."""
    i, j, k = tile.row, tile.col, tile.inner
    x = (k, i) if problem.x_transposed else (i, k)
    weight = (j, k) if problem.weight_transposed else (k, j)
    return (
        X + x[0] * problem.x_stride + x[1],
        WEIGHT + weight[0] * problem.weight_stride + weight[1],
        Y + (i * problem.n + j) * problem.output.size,
    )


def _loop(problem: Matmul, tile: _Tile, hardware: Hardware) -> list[Command]:
    """Return a tile as LOOP_WS, which is configured first."""
    x, weight, y = _places(problem, tile)
    first, last = tile.inner == 0, tile.inner + tile.depth == problem.k
    dim = hardware.dim
    i, j, k = map(hardware.blocks, (tile.rows, tile.cols, tile.depth))
    pads = (i * dim - tile.rows, j * dim - tile.cols, k * dim - tile.depth)
    biased = problem.bias and first
    return [
        c.LoopBounds(*pads, i, j, k),
        c.LoopAddressesAB(x, weight),
        c.LoopAddressesDC(only_if(biased, BIAS + tile.col * 4), only_if(last, y)),
        c.LoopStridesAB(problem.x_stride, problem.weight_stride),
        c.LoopStridesDC(0, problem.n),
        c.LoopWs(
            accumulate=biased or not first,
            full_c=problem.output.full,
            activation=problem.output.activation,
            a_transpose=problem.x_transposed,
            b_transpose=problem.weight_transposed,
        ),
    ]


def _output_stationary(problem: Matmul, tile: _Tile, hardware: Hardware) -> Iterator[Command]:
    """Yield commands by which sums stay in the array until a block of them is done."""
    x, weight, y = _places(problem, tile)
    dim, blocks = hardware.dim, hardware.blocks(tile.depth)
    first, last = tile.inner == 0, tile.inner + tile.depth == problem.k
    rows, cols = list(parts(tile.rows, dim)), list(parts(tile.cols, dim))
    depths = list(parts(tile.depth, dim))
    b_start = len(rows) * blocks * dim

    def a_row(i: int, k: int) -> int:
        return (i // dim * blocks + k // dim) * dim

    def b_row(k: int, j: int) -> int:
        return b_start + (j // dim * blocks + k // dim) * dim

    def sums(i: int, j: int) -> int:
        return ACCUMULATOR + (i // dim * len(cols) + j // dim) * dim

    for i, height in rows:
        for k, depth in depths:
            if problem.x_transposed:
                yield c.Mvin(x + k * problem.x_stride + i, a_row(i, k), height, depth)
            else:
                yield c.Mvin(x + i * problem.x_stride + k, a_row(i, k), depth, height)
    for j, width in cols:
        for k, depth in depths:
            if problem.weight_transposed:
                yield c.Mvin2(weight + j * problem.weight_stride + k, b_row(k, j), depth, width)
            else:
                yield c.Mvin2(weight + k * problem.weight_stride + j, b_row(k, j), width, depth)
    biased = problem.bias and first
    for i, height in rows:
        for j, width in cols:
            if biased:
                yield c.Mvin3(BIAS + (tile.col + j) * 4, sums(i, j), width, height)
            added = ACCUMULATE if biased or not first else 0
            for k, depth in depths:
                done = k + depth == tile.depth
                out = sums(i, j) | added if done else GARBAGE
                yield c.Preload(GARBAGE, dim, dim, out, width, height)
                compute = c.ComputePreloaded if k == 0 else c.ComputeAccumulated
                yield compute(a_row(i, k), depth, height, b_row(k, j), width, depth)
            if last:
                full = FULL if problem.output.full else 0
                at = y + (i * problem.n + j) * problem.output.size
                yield c.Mvout(at, sums(i, j) | full, width, height)
