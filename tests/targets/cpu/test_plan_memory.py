"""Memory as it was planned in real programs, seen in the code that comes out."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.ir.bindings import find_function, mlir_context
from fewbit.ir.memref_views import VIEWS
from fewbit.models import lenet_text
from fewbit.passes.memory.arena import Buffer, lower_bound, overlaps
from fewbit.passes.memory.plan_memory import Arena, element_bytes
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.entry import ENTRY
from fewbit.program.program import Program
from fewbit.targets.cpu.target import begin_cpu
from fewbit.toolchain.isa import Isa
from tests.targets.cpu.programs import inputs, layers

PROGRAMS = {
    "layers": layers,
    "quantized layers": lambda: layers(bits=4),
    "lenet": lambda: Program.parse(lenet_text()),
}


def planned(program: Program) -> Compilation:
    return begin_cpu(program, "net", Isa.of("x86-64-v3")).run("memref")


def uses(value: Any) -> Iterator[Any]:
    for use in value.uses:
        yield use.owner.operation
        if use.owner.operation.name in VIEWS:
            yield from uses(use.owner.operation.results[0])


def buffers_in(compilation: Compilation) -> tuple[list[Buffer], list[int]]:
    """Parts of the arena, when they are used and where they lie, as the entry function has them."""
    ir: Any = import_module("torch_mlir.ir")

    found, offsets = list[Buffer](), list[int]()
    with mlir_context():
        block = find_function(compilation.module, ENTRY).entry_block
        times = {op.operation: i for i, op in enumerate(block.operations)}
        arena = block.arguments[len(block.arguments) - 1]
        for use in arena.uses:
            view = use.owner.operation
            assert view.name == "memref.view"
            type = ir.MemRefType(view.results[0].type)
            size = prod(type.shape) * element_bytes(type.element_type)
            used: list[int] = []
            for op in uses(view.results[0]):
                while op not in times:
                    op = op.parent
                used.append(times[op])
            offset = ir.IntegerAttr(view.operands[1].owner.attributes["value"]).value
            if used:
                found.append(Buffer(size, min(used), max(used)))
                offsets.append(offset)
    return found, offsets


@pytest.mark.parametrize("name", PROGRAMS)
def test_live_buffers_do_not_overlap(name: str) -> None:
    compilation = planned(PROGRAMS[name]())
    found, offsets = buffers_in(compilation)
    assert found
    assert overlaps(found, offsets) == []
    static = compilation.ctx.get(Arena).static
    assert static is not None
    assert max(o + b.size for o, b in zip(offsets, found, strict=True)) <= static
    assert lower_bound(found) <= static <= sum(b.size for b in found) + 64 * len(found)
    assert "memref.alloc" not in str(compilation.module)


def test_arena_grows_with_the_batch() -> None:
    runner = fewbit.compile(layers(dynamic=True)).runner
    sizes = [runner.arena_bytes(*inputs(rows)) - 64 for rows in (1, 2, 10)]
    assert sizes[0] > 0
    assert sizes == [sizes[0], 2 * sizes[0], 10 * sizes[0]]


def test_results_do_not_depend_on_what_the_arena_held() -> None:
    program = layers(dynamic=True, bits=8)
    runner = fewbit.compile(program).runner
    wanted = program.run(*inputs(9))
    for filling in (0, 255, 127):
        runner(*inputs(9))
        runner._local.arena[:] = filling
        for got, right in zip(runner(*inputs(9)), wanted, strict=True):
            assert np.array_equal(got, right)


OTHERS = {"mlp": 1.25, "lenet": 41.34, "vgg": 576, "resnet8": 768}
"""KB of activations that MiCo's pooling of memory needs for its models of these names."""


@pytest.mark.parametrize("recipe", [None, "w8a8"])
@pytest.mark.parametrize("name", OTHERS)
def test_networks_need_little_memory(name: str, recipe: str | None) -> None:
    program = fewbit.import_model(f"zoo:{name}")
    if recipe is not None:
        program = fewbit.quantize(program, recipe)
    regions = planned(program).ctx.get(Arena).regions
    for region in regions:
        assert overlaps(region.buffers, region.plan.offsets) == []
        assert region.plan.peak <= 1.1 * lower_bound(region.buffers) + 64
    # Every unit is a number of samples, and there is one.
    assert sum(region.plan.peak for region in regions) <= OTHERS[name] * 1024
