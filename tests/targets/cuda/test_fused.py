"""Layers whose blocks begin with the loops before them: the interpreter's bits, and few launches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy, manual_seed
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.kernels.cuda.nvrtc import compile_source
from fewbit.targets.cuda.arena_values import ArenaValues
from fewbit.targets.cuda.fused import Fused
from fewbit.targets.cuda.memory import Memory, dense
from fewbit.targets.cuda.nest import Nest
from fewbit.targets.cuda.prologue import write_prologue
from tests.kernels.cuda.compiling import needs_nvrtc
from tests.targets.cuda.emulate import COMPILER, Emulated
from tests.targets.cuda.test_programs import compile_model, relative

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
RNG = np.random.default_rng(1)


class Block(nn.Module):
    """A norm and a residual around two layers, as in a language model."""

    def __init__(self, width: int = 128, hidden: int = 192) -> None:
        super().__init__()
        self.first, self.second = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.mix = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mix(self.first(x))
        y = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def compile_block(recipe: str, rows: int = 1, **options: Any) -> tuple[Any, fewbit.Program]:
    manual_seed(0)
    imported = fewbit.import_model(Block(), (torch.zeros(rows, 128),))
    return compile_model(imported, recipe, **options)


def fused_steps(compilation: Any) -> list[dict[str, Any]]:
    return [step for step in compilation.module.described if "prologue" in step]


@needs_compiler
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("recipe", ["w4a8g32", "w8a8"])
def test_layers_make_their_own_rows(recipe: str, rows: int, tmp_path: Path) -> None:
    compilation, program = compile_block(recipe, rows)
    steps = compilation.module.described
    assert [step["step"] for step in steps] == ["few_bit", "few_bit", "few_bit", "loops"]
    assert all("x" in step["prologue"]["places"] for step in steps[:3])
    x = RNG.standard_normal((rows, 128)).astype(np.float32)
    emulated = Emulated(compilation, tmp_path)
    (found,), (expected,) = emulated(x), program.run(x)
    assert relative(found, expected) < 1e-6
    np.testing.assert_array_equal(emulated(x)[0], found)  # what a run leaves behind changes nothing


@needs_compiler
def test_integers_are_those_of_the_interpreter(tmp_path: Path) -> None:
    """One layer: its sums are exact, so every bit of the row that its blocks make counts."""
    net = nn.Sequential(nn.RMSNorm(128), nn.Linear(128, 48, bias=False))
    imported = fewbit.import_model(net, (torch.zeros(2, 128),))
    compilation, program = compile_model(imported, "w4a8")
    assert len(fused_steps(compilation)) == 1
    x = RNG.standard_normal((2, 128)).astype(np.float32)
    np.testing.assert_array_equal(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0])


def test_values_of_a_launch_have_places_of_their_own() -> None:
    compilation, _ = compile_block("w4a8g32")
    planner = compilation.module.planner
    assert planner.values is not None
    for number, step in enumerate(planner.steps):
        read = {planner.values.of(m) for m in step.reads}
        later = planner.later[number]
        spans = [
            (value, planner.values.extents()[value])
            for value in {*read, *(planner.values.of(m) for m in step.writes)}
            if value and (value in later or value in read)
        ]
        used = [s for s in spans if _is_global(planner, number, s[0])]
        for i, (_, (begin, end)) in enumerate(used):
            assert end <= planner.arena
            assert all(end <= low or high <= begin for _, (low, high) in used[:i])


def _is_global(planner: Any, number: int, value: int) -> bool:
    first, last = planner.values.lifetimes(planner.steps)[value]
    return first != last or not isinstance(planner.steps[number], Fused)


def test_many_blocks_leave_the_row_to_one_launch() -> None:
    net = nn.Sequential(nn.RMSNorm(64), nn.Linear(64, 16 * 132 * 5, bias=False))
    imported = fewbit.import_model(net, (torch.zeros(1, 64),))
    compilation, _ = compile_model(imported, "w4a8g32")
    assert not fused_steps(compilation)
    assert [step["step"] for step in compilation.module.described][:2] == ["loops", "few_bit"]


def test_constants_are_asked_for_before_the_launch_before_ends() -> None:
    compilation, _ = compile_block("w4a8g32")
    planner = compilation.module.planner
    step = planner.steps[1]
    assert isinstance(step, Fused)
    text = write_prologue(step, planner.values, planner.later[1], 512).text
    main = text[text.index("DEVICE void @(") :]
    before, after = main.split("WAIT;")
    assert "copy_block(shared" in before
    assert after.count("if (first) copy_block(") == 1  # the residual


def steps_of(*nests: Nest) -> list[Nest]:
    return list(nests)


def loop(reads: list[Memory], writes: list[Memory]) -> Nest:
    pointers = [*reads, *writes]
    return Nest("", [""] * len(pointers), 1, pointers, writes, read=frozenset(range(len(reads))))


def test_what_is_read_by_another_name_belongs_together() -> None:
    places = [dense("arena", "f32", (16,), at) for at in (0, 64, 0)]
    a, b, c = (replace(m, owner=i) for i, m in enumerate(places, 1))
    extents = [(0, 64), (64, 128), (0, 64)]
    alias = ArenaValues.find(extents, steps_of(loop([], [a]), loop([c], [b])))
    assert alias is not None
    assert alias.of(a) == alias.of(c) != alias.of(b)
    reused = ArenaValues.find(extents, steps_of(loop([], [a]), loop([a], [b]), loop([b], [c])))
    assert reused is not None
    assert len({reused.of(m) for m in (a, b, c)}) == 3
    moves, size = reused.plan(steps_of(loop([], [a]), loop([a], [b]), loop([b], [c])), frozenset())
    assert size == 128
    assert moves[reused.of(a)] != 64 + moves[reused.of(b)]
    assert ArenaValues.find([(8, 72)], steps_of(loop([], [a]))) is None
    whole = dense("arena", "f32", (16,))
    assert ArenaValues.find(extents, steps_of(loop([], [whole]))) is None


@needs_nvrtc
@pytest.mark.slow
def test_prologues_are_machine_code() -> None:
    compilation, _ = compile_block("w4a8g32")
    plan = compilation.module.plan("block")
    assert len(plan.launches) == 4
    for launch in plan.launches[:3]:
        assert launch.symbol == "few_bit"
        assert launch.early
        arguments = {a.buffer for a in launch.arguments if hasattr(a, "buffer")}
        assert arguments <= set(plan.buffers)
    (first, *_) = compilation.module.prologues.values()
    compiled = compile_source(
        first.before('extern "C" __global__ void none(u8* m PARAMETERS) { PROLOGUE(m, 1); }', 512),
        HOPPER,
    )
    assert compiled.resources["none"].spilled == 0


def test_float_activations_are_made_in_shared_memory(tmp_path: Path) -> None:
    compilation, program = compile_block("w4afpg32", precision="f16")
    assert fused_steps(compilation)
    if COMPILER is None:
        return
    x = from_numpy(RNG.standard_normal((1, 128)).astype(np.float32)).numpy()
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 2e-3
