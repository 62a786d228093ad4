"""Whole programs on the accelerator and its host, against the interpreter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.errors import UsageError
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.targets.bitfusion.schedule import cost
from fewbit.targets.bitfusion.simulate import BitFusionSimulator
from fewbit.targets.compile import lower
from fewbit.targets.registry import find_target


class Net(nn.Module):
    """Padding, a stride, depthwise, average pooling, one dimension, and dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.pool = nn.AvgPool2d(2, padding=1)
        self.line = nn.Conv1d(8, 6, 3, padding=1, dilation=2)
        self.head = nn.Linear(6, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.depthwise(torch.relu(self.stem(x)))))
        return self.head(torch.relu(self.line(x.flatten(2))).mean(2))


@pytest.fixture(scope="module")
def program() -> Program:
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = {"x": {0: batch}}
    return fewbit.import_model(Net(), (torch.randn(2, 3, 12, 12),), dynamic_shapes=shapes)


def images(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(count).standard_normal((count, 3, 12, 12)).astype(np.float32)


@pytest.mark.parametrize("recipe", ["w8a8", "w4a8", "w3a5", "w2a2", "w1a1", "w1.58a7", "w6a4"])
def test_results_are_those_of_the_interpreter(
    recipe: str, program: Program, tmp_path: Path
) -> None:
    quantized = fewbit.quantize(program, recipe)
    artifact = fewbit.compile(quantized, "bitfusion", tmp_path / "b")
    for count in (1, 3):
        x = images(count)
        np.testing.assert_array_equal(artifact(x), quantized.run(x)[0])


def test_events_and_costs_of_a_run(program: Program, tmp_path: Path) -> None:
    fewbit.compile(fewbit.quantize(program, "w4a8"), "bitfusion:eyeriss", tmp_path / "b")
    device, folder = find_target("bitfusion"), open_folder(tmp_path / "b")
    runner = device.load(folder)
    execution = runner.execute(images(2))
    (estimate,) = runner.estimate(execution.events)
    names = [layer.name for layer in execution.events.layers]
    assert names == ["stem", "depthwise", "line", "head"] == [x.name for x in estimate.layers]
    assert execution.events.counts["macs"] == 2 * (
        8 * 6 * 6 * 27 + 8 * 6 * 6 * 9 + 6 * 14 * 24 + 60
    )
    for counted, predicted in zip(execution.events.layers, estimate.layers, strict=True):
        assert counted.counts["bytes"] == predicted.bytes
    assert estimate.machine == "bitfusion:eyeriss"
    assert estimate.energy is not None
    assert "stem" in runner.stats()


def test_blocks_are_a_stage(program: Program) -> None:
    text = lower(fewbit.quantize(program, "w4a8"), "blocks", "bitfusion")
    blocks = json.loads(text)["blocks"]
    assert [block["layer"] for block in blocks] == ["stem", "depthwise", "line", "head"]
    assert [block["unfolded"] for block in blocks] == [True, False, True, False]
    assert blocks[1]["groups"] == 8
    assert blocks[0]["bricks"] == [4, 2]


def test_layers_that_it_cannot_run_stay_on_the_host(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quantized = fewbit.quantize(program, "w4a8g3")
    artifact = fewbit.compile(quantized, "bitfusion", tmp_path / "b")
    x = images(1)
    np.testing.assert_array_equal(artifact(x), quantized.run(x)[0])
    assert "runs on the host: its weights have scales of groups" in capsys.readouterr().err


def test_an_unknown_accelerator_is_refused(program: Program) -> None:
    with pytest.raises(UsageError, match="no accelerator 'bitfusion:tpu'"):
        fewbit.compile(program, "bitfusion:tpu")


@pytest.mark.parametrize(
    ("name", "recipe", "shape"),
    [
        ("lenet", "[[8,6,6,4,4],[8,8,8,8,8]]", (1, 1, 28, 28)),
        pytest.param("resnet8", "w8a8", (1, 3, 32, 32), marks=pytest.mark.slow),
    ],
)
def test_networks(name: str, recipe: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    artifact = fewbit.compile(f"zoo:{name}", "bitfusion", tmp_path / "b", recipe=recipe)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    simulator = BitFusionSimulator(open_folder(tmp_path / "b"))
    expected = simulator.program.run(x)
    np.testing.assert_array_equal(artifact(x), expected[0])
    execution = simulator.run([x])
    for block, layer in zip(simulator.blocks.values(), execution.events.layers, strict=True):
        predicted = cost(block.cost_layer, simulator.accelerator)
        moved = predicted.reads["dram"] + predicted.writes["dram"]
        assert layer.counts["bytes"] == moved // 8
