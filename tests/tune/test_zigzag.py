"""Nests and hardware in ZigZag's words; its mapping in ours, where it is installed."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

from fewbit.cost.hardware import find_hardware
from fewbit.cost.loops import LoopNest
from fewbit.tune.job import model_of
from fewbit.tune.roles import roles_of
from fewbit.tune.zigzag import layer_of, refusal, zigzag_schedules
from fewbit.tune.zigzag.accelerator import accelerator_of
from fewbit.tune.zigzag.mapping import held_tiles
from tests.cost.loops.nests import convolution, matmul

CPU = find_hardware("vexii").model_copy(update={"vector_bits": 512, "cores": 1})


def test_widths_are_true() -> None:
    layer = layer_of(matmul(8, 16, 4, bits=4))
    assert layer["operand_precision"] == {"I": 32, "W": 4, "O": 32, "O_final": 32}
    assert layer["equation"] == "O[a][b]+=I[a][c]*W[c][b]"
    assert layer["loop_sizes"] == [8, 16, 4]


def test_windows_are_relations() -> None:
    layer = layer_of(convolution(8, 16, stride=2, dilation=3))
    assert layer["operator_type"] == "Conv"
    assert layer["dimension_relations"] == ["ac=2*a+3*c"]


def unary(nest: LoopNest) -> LoopNest:
    return replace(nest, accesses=(nest.accesses[0], nest.accesses[2]))


def test_what_it_cannot_express_is_marked() -> None:
    nest = matmul(8, 16, 4)
    three = replace(nest, accesses=(nest.accesses[0], *nest.accesses))
    for other, words in ((unary(nest), "one input"), (three, "more than two")):
        assert words in (refusal(other) or "")
        assert zigzag_schedules(other, CPU) == []
        model = model_of("zigzag", CPU, other)
        assert model is not None
        assert words in model.name
        assert model.name.startswith("analytic")
    assert refusal(nest) is None


def test_caches_are_above_the_array() -> None:
    machine = accelerator_of(CPU, 4, 64, 32)
    assert machine["operational_array"]["sizes"] == [64, 4]
    assert list(machine["memories"]) == ["sums", "L1d", "memory"]
    assert machine["memories"]["L1d"]["size"] == 8 * CPU.memories[0].bytes


def test_loops_of_a_mapping_become_tiles() -> None:
    nest = matmul(64, 64, 32)
    roles = roles_of(nest)
    assert roles is not None
    levels = {"I": [[("C", 8), ("A", 2)], [("B", 4), ("C", 4)], [("A", 8)]]}
    assert held_tiles(levels, nest, roles, (4, 16, 1)) == [(8, 16, 8), (8, 64, 32)]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("zigzag") is None, reason="ZigZag is not installed")
def test_zigzag_itself() -> None:
    nest = matmul(64, 64, 64)
    found = zigzag_schedules(nest, CPU)
    assert found
    for schedule in found:
        assert all(t <= e for t, e in zip(schedule.distribution, nest.extents, strict=True))
