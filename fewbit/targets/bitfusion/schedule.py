"""The best tiling and order of loops for a layer, and what the layer then costs.

This is the cost model of the original simulator, equal to it cycle for cycle. Five loops run over
tiles: batch, output columns and rows, input channels, output channels. Tiles are powers of two. All
tilings are tried in all orders; the fewest cycles win, then the least energy. A stream stays in its
buffer across loops that do not move it, as long as what it covers fits into half the buffer.

What is computed overlaps with what is moved, except for the first and last transfers:
cycles = compute + max(0, middle transfers - compute) + first and last transfers.

All tilings and orders are rows and columns of arrays, so a layer takes milliseconds. The original
knows square images only; here the two sides may differ, and groups are costed one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.targets.bitfusion.accelerator import MICO, OUT_BITS, Accelerator
from fewbit.targets.bitfusion.layer import Layer

Ints = NDArray[np.int64]

MOST_MACS = 1 << 50
"""Beyond, counts of bits might not fit 64 bits."""

TRIED_FIRST = 16
"""Tilings whose best gives a bound for the others."""

LOOPS = ("batch", "columns", "rows", "inputs", "outputs")
MOVED_BY = {
    "weight": ("inputs", "outputs"),
    "act": ("batch", "columns", "rows", "inputs"),
    "out": ("batch", "columns", "rows", "outputs"),
}
"""The loops whose steps move a stream to another part of its tensor."""


@dataclass(frozen=True)
class Schedule:
    """Loops, the outermost first, with how often each runs; and the sizes of a tile."""

    counts: dict[str, int]
    tile: dict[str, int]


@dataclass(frozen=True)
class Cost:
    """What a layer takes: cycles, bits moved, and nanojoules."""

    cycles: int
    stalls: int
    """Cycles of waiting for memory, the first and last transfers among them."""
    reads: dict[str, int]
    writes: dict[str, int]
    """Bits by memory: weight, act, out, dram."""
    energy: float

    @property
    def compute(self) -> int:
        """Cycles in which the array computes."""
        return self.cycles - self.stalls

    def __mul__(self, times: int) -> Cost:
        return Cost(
            self.cycles * times,
            self.stalls * times,
            {name: bits * times for name, bits in self.reads.items()},
            {name: bits * times for name, bits in self.writes.items()},
            self.energy * times,
        )


def residence(
    layer: Layer, schedule: Schedule, accelerator: Accelerator = MICO
) -> dict[str, tuple[int, int]]:
    """Return by stream inside how many loops it is loaded, and how many bits at a time."""
    tile = {loop: np.array([size], np.int64) for loop, size in schedule.tile.items()}
    streams: dict[str, tuple[int, int]] = {}
    for stream, bits in _tile_bits(layer, tile, accelerator).items():
        held, depth = int(bits[0]), 0
        for inside, (loop, times) in reversed(list(enumerate(schedule.counts.items(), 1))):
            if loop not in MOVED_BY[stream]:
                continue
            if held * times > _half(accelerator, stream):
                depth = inside
                break
            held *= times
        streams[stream] = depth, held
    return streams


def cost(layer: Layer, accelerator: Accelerator = MICO) -> Cost:
    """Return what the layer costs in its best schedule."""
    return plan(layer, accelerator)[1]


@lru_cache(maxsize=4096)
def plan(layer: Layer, accelerator: Accelerator = MICO) -> tuple[Schedule, Cost]:
    """Return the best schedule and its cost; of a grouped layer, the schedule of one group."""
    if layer.macs > MOST_MACS:
        raise UnsupportedError(f"a layer of {layer.macs:.1e} MACs is too large to be scheduled")
    if layer.groups == 1:
        return _search(layer, accelerator)
    groups = layer.groups
    single = replace(
        layer, inputs=layer.inputs // groups, outputs=layer.outputs // groups, groups=1
    )
    schedule, each = _search(single, accelerator)
    return schedule, each * groups


@dataclass
class _Candidates:
    """All tilings that fit the buffers: for each loop, tile sizes and how many tiles there are."""

    tile: dict[str, Ints]
    count: dict[str, Ints]
    bits: dict[str, Ints]
    """Bits of one tile, by stream."""

    def __getitem__(self, chosen: NDArray[Any]) -> _Candidates:
        """Return some of the tilings."""
        parts = [
            {name: values[chosen] for name, values in part.items()}
            for part in (self.tile, self.count, self.bits)
        ]
        return _Candidates(*parts)


def _search(layer: Layer, accelerator: Accelerator) -> tuple[Schedule, Cost]:
    """Return the best of all tilings, of which most need not be tried: their bounds say enough."""
    candidates = _candidates(layer, accelerator)
    least = _least_cycles(layer, candidates, accelerator)
    if len(least) > TRIED_FIRST:
        first = np.argpartition(least, TRIED_FIRST)[:TRIED_FIRST]
        _, cost = _best(layer, candidates[first], accelerator)
        candidates = candidates[least <= cost.cycles]
    return _best(layer, candidates, accelerator)


def _least_cycles(layer: Layer, candidates: _Candidates, accelerator: Accelerator) -> Ints:
    """Return lower bounds: computing and the first tiles, or each stream moved once."""
    count, bits, width = candidates.count, candidates.bits, accelerator.bandwidth
    tiles = _product(list(count.values()))
    edges = (_sum(bits) + bits["out"]) // width
    once = {
        stream: size * _product([count[loop] for loop in MOVED_BY[stream]])
        for stream, size in bits.items()
    }
    moving = (_sum(once) + once["out"]) // width
    computing = tiles * _compute_cycles(layer, candidates.tile, accelerator)
    return np.maximum(computing + edges, moving)


def _best(layer: Layer, candidates: _Candidates, accelerator: Accelerator) -> tuple[Schedule, Cost]:
    moved, resident = _transfers(candidates, accelerator)
    tiles = _product(list(candidates.count.values()))
    compute = tiles * _compute_cycles(layer, candidates.tile, accelerator)
    first = _sum(resident)
    dram_reads = _sum(moved)
    middle = dram_reads + moved["out"] - first - resident["out"]
    width = accelerator.bandwidth
    latency = _ceil(first, width) + _ceil(resident["out"], width)
    stalls = np.maximum(0, _ceil(middle, width) - compute) + latency
    cycles = compute + stalls

    inner_reads, inner_writes = _inner_accesses(layer, candidates.tile, tiles, accelerator)
    zero = np.zeros_like(cycles)
    reads = {name: inner_reads[name] + zero for name in ("weight", "act", "out")}
    reads["out"] = reads["out"] + moved["out"]
    writes = {"weight": moved["weight"], "act": moved["act"], "out": moved["out"] + inner_writes}
    reads["dram"] = dram_reads
    writes["dram"] = moved["out"]
    energy = _energy(compute + zero, reads, writes, accelerator)

    fewest = cycles == cycles.min()
    best = int(np.where(fewest, energy, np.inf).argmin())
    order_index, tiling = np.unravel_index(best, cycles.shape)
    order = _orders()[int(order_index)]
    schedule = Schedule(
        {loop: int(candidates.count[loop][tiling]) for loop in order},
        {loop: int(candidates.tile[loop][tiling]) for loop in LOOPS},
    )
    where = (order_index, tiling)
    return schedule, Cost(
        int(cycles[where]),
        int(stalls[where]),
        {name: int(value[where]) for name, value in reads.items()},
        {name: int(value[where]) for name, value in writes.items()},
        float(energy[where]),
    )


def _candidates(layer: Layer, accelerator: Accelerator) -> _Candidates:
    columns = 1 if layer.im2col else accelerator.columns
    rows, width = layer.image
    steps = _powers(max(rows, width))
    sizes = np.array(
        list(
            product(
                _tiles(layer.batch),
                steps,
                _tiles(layer.inputs),
                _tiles(layer.outputs, columns),
            )
        ),
        dtype=np.int64,
    ).T
    tile = {
        "batch": sizes[0],
        "columns": np.minimum(sizes[1], width),
        "rows": np.minimum(sizes[1], rows),
        "inputs": sizes[2],
        "outputs": sizes[3],
    }
    bits = _tile_bits(layer, tile, accelerator)
    fits = np.logical_and.reduce([bits[s] <= _half(accelerator, s) for s in bits])
    if not fits.any():
        raise UnsupportedError(
            "no tile of the layer fits into the accelerator's buffers",
            hint="larger buffers, or fewer bits",
        )
    tile = {loop: size[fits] for loop, size in tile.items()}
    whole = {
        "batch": layer.batch,
        "columns": width,
        "rows": rows,
        "inputs": layer.inputs,
        "outputs": layer.outputs,
    }
    count = {loop: _ceil(whole[loop], tile[loop]) for loop in LOOPS}
    return _Candidates(tile, count, {stream: value[fits] for stream, value in bits.items()})


def _tile_bits(layer: Layer, tile: dict[str, Ints], accelerator: Accelerator) -> dict[str, Ints]:
    """Return what one tile of each stream takes; rows of weights and columns of sums are whole."""
    lanes = accelerator.rows * accelerator.parallel(layer.act_bits, layer.weight_bits)
    window = prod(layer.kernel) * tile["inputs"]
    weight = _ceil(window, lanes) * lanes * tile["outputs"] * layer.weight_bits
    if layer.im2col:
        pixels = tile["columns"] * tile["rows"] * window
    else:
        height = layer.kernel[0] + (tile["rows"] - 1) * layer.stride[0]
        width = layer.kernel[1] + (tile["columns"] - 1) * layer.stride[1]
        pixels = height * width * tile["inputs"]
    act = pixels * tile["batch"] * layer.act_bits
    outputs = _ceil(tile["outputs"], accelerator.columns) * accelerator.columns
    out = tile["columns"] * tile["rows"] * outputs * tile["batch"] * OUT_BITS
    return {"weight": weight, "act": act, "out": out}


def _transfers(
    candidates: _Candidates, accelerator: Accelerator
) -> tuple[dict[str, Ints], dict[str, Ints]]:
    """Return bits moved and bits in the buffer at a time, by stream, order and tiling.

    From the innermost loop outwards a stream grows by the loops that move it while it fits; the
    first loop after that, and all around it, fetch it anew.
    """
    loops = np.array([[LOOPS.index(loop) for loop in reversed(order)] for order in _orders()])
    counts = np.stack([candidates.count[loop] for loop in LOOPS])
    moved: dict[str, Ints] = {}
    resident: dict[str, Ints] = {}
    for stream, bits in candidates.bits.items():
        moves = np.array([loop in MOVED_BY[stream] for loop in LOOPS])
        total = np.broadcast_to(bits, (len(loops), len(bits))).copy()
        held = total.copy()
        stays = np.ones(total.shape, dtype=np.bool_)
        for level in range(len(LOOPS)):
            moving = moves[loops[:, level]][:, np.newaxis]
            total *= np.where(moving | ~stays, counts[loops[:, level]], 1)
            stays &= ~moving | (total <= _half(accelerator, stream))
            held = np.where(moving & stays, total, held)
        moved[stream] = total
        resident[stream] = held
    return moved, resident


def _compute_cycles(layer: Layer, tile: dict[str, Ints], accelerator: Accelerator) -> Ints:
    lanes = accelerator.rows * accelerator.parallel(layer.act_bits, layer.weight_bits)
    pixels = tile["batch"] * tile["rows"] * tile["columns"]
    outputs = _ceil(tile["outputs"], accelerator.columns)
    positions = prod(layer.kernel)
    if layer.im2col:
        return pixels * outputs * _ceil(positions * tile["inputs"], lanes)
    return pixels * outputs * positions * _ceil(tile["inputs"], lanes)


def _inner_accesses(
    layer: Layer, tile: dict[str, Ints], tiles: Ints, accelerator: Accelerator
) -> tuple[dict[str, Ints], Ints]:
    """Return bits that the array reads by stream, and those of sums that it writes.

    Inside a tile one of the three streams stays where it is: the one for which least is moved.
    """
    act, weight = layer.act_bits, layer.weight_bits
    lanes = accelerator.rows * accelerator.parallel(act, weight)
    positions = prod(layer.kernel)
    outputs = _ceil(tile["outputs"], accelerator.columns) * accelerator.columns
    if layer.im2col:
        window = _ceil(tile["inputs"] * positions, lanes) * lanes
    else:
        window = _ceil(tile["inputs"], lanes) * lanes * positions
    pixels = tile["batch"] * tile["rows"] * tile["columns"]
    by_act = window * pixels * (act + outputs * (weight + OUT_BITS))
    by_out = outputs * pixels * (OUT_BITS + window * (act + weight))
    by_weight = window * outputs * (weight + pixels * (act + OUT_BITS))
    least = np.minimum(np.minimum(by_act, by_out), by_weight)

    inputs = positions * tile["inputs"]
    products = tiles * inputs * pixels * tile["outputs"]
    act_stays = by_act == least
    out_stays = ~act_stays & (by_out == least)
    weight_stays = ~act_stays & ~out_stays
    sums = np.where(out_stays, tiles * tile["outputs"] * pixels, products) * OUT_BITS
    reads = {
        "act": np.where(act_stays, tiles * inputs * pixels, products) * act,
        "weight": np.where(weight_stays, tiles * inputs * tile["outputs"], products) * weight,
        "out": sums,
    }
    return reads, sums


def _energy(
    compute: Ints, reads: dict[str, Ints], writes: dict[str, Ints], accelerator: Accelerator
) -> NDArray[np.float64]:
    each = accelerator.energy
    return (
        compute * each.cycle
        + reads["weight"] * each.weight_read
        + writes["weight"] * each.weight_write
        + reads["act"] * each.act_read
        + writes["act"] * each.act_write
        + reads["out"] * each.out_read
        + writes["out"] * each.out_write
        + reads["dram"] * each.dram
        + writes["dram"] * each.dram
    )


@cache
def _orders() -> tuple[tuple[str, ...], ...]:
    """Return loop orders, outermost first; rows are always inside columns, which are alike."""
    return tuple(
        order for order in permutations(LOOPS) if order.index("columns") < order.index("rows")
    )


def _tiles(size: int, unit: int = 1) -> list[int]:
    return [min(step * unit, size) for step in _powers(-(-size // unit))]


def _powers(size: int) -> list[int]:
    """Return powers of two, up to the first that is not below `size`."""
    return [1 << step for step in range((size - 1).bit_length() + 1)]


def _half(accelerator: Accelerator, stream: str) -> int:
    buffers = {
        "weight": accelerator.weight_buffer,
        "act": accelerator.act_buffer,
        "out": accelerator.out_buffer,
    }
    return buffers[stream] * 8 // 2


def _ceil(a: Ints | int, b: Ints | int) -> Ints:
    return -(-np.asarray(a, dtype=np.int64) // b)


def _sum(by_stream: dict[str, Ints]) -> Ints:
    return by_stream["weight"] + by_stream["act"] + by_stream["out"]


def _product(factors: list[Ints]) -> Ints:
    return np.multiply.reduce(factors)
