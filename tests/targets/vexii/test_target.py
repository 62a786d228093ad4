from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.cli.main import run
from fewbit.cost.cycles.instructions import MISS
from fewbit.cost.layers import made_up_inputs
from fewbit.errors import UsageError
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.device import Estimate
from fewbit.targets.registry import find_target

SEED = "[[8,6,6,4,4],[8,8,8,8,8]]"


def model(name: str, recipe: str) -> Program:
    return fewbit.quantize(fold_batch_norm(fewbit.import_model(name)), recipe)


def is_equal(artifact: Artifact, program: Program, inputs: list[Any]) -> bool:
    """Return whether it gives what the interpreter gives, to the bit."""
    expected, given = program.run(*inputs), artifact.run(*inputs)
    return all(np.array_equal(a, b) for a, b in zip(expected, given, strict=True))


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("vexii") / "lenet"
    return fewbit.compile(model("zoo:lenet", SEED), target="vexii", output=folder)


def test_lenet_with_the_seeds_scheme(lenet: Artifact) -> None:
    program = model("zoo:lenet", SEED)
    inputs = made_up_inputs(program, dynamic=3)
    assert (lenet(*inputs) == program.run(*inputs)[0]).all()
    again = fewbit.load(lenet.folder)
    assert (again(*inputs) == program.run(*inputs)[0]).all()


def test_events_and_estimates(lenet: Artifact) -> None:
    target = find_target("vexii")
    inputs = made_up_inputs(model("zoo:lenet", SEED), dynamic=1)
    lenet(*inputs)
    events = lenet.runner.events
    layers = {layer.name: layer.counts for layer in events.layers}
    assert set(layers) >= {"conv1", "conv2", "fc1", "fc2", "fc3"}
    counted = sum(counts["instructions"] for counts in layers.values())
    assert 0 <= events.counts["instructions"] - counted < 3000
    # 8 bits: 7 words for 25 taps; 4-bit weights, 11 words for 84 of them.
    assert layers["conv1"]["dot"] == 24 * 24 * 6 * 7
    assert layers["fc3"]["dot"] == 10 * 2 * 11
    estimates = target.estimate(lenet._folder, events)  # pyright: ignore
    small, high, cacheless = cast(tuple[Estimate, ...], estimates)
    assert [e.machine for e in (small, high, cacheless)] == ["small", "high", "cacheless"]
    # Without a cache nothing waits for lines; all else is as on the small core.
    fetched = events.counts["lines fetched, 4 KB"]
    assert small.cycles - cacheless.cycles == pytest.approx(MISS * fetched)
    assert fetched > events.counts["lines fetched, 8 KB"] > 1000
    assert high.cycles < cacheless.cycles < small.cycles
    assert len({round(e.cycles) for e in (small, high, cacheless)}) == 3
    assert sum(layer.cycles for layer in small.layers) == pytest.approx(small.cycles, rel=0.01)


def test_stats_on_the_command_line(
    lenet: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = made_up_inputs(model("zoo:lenet", SEED), dynamic=1)
    np.save(tmp_path / "x.npy", inputs[0])
    result = tmp_path / "y.npy"
    command = ["run", str(lenet.folder), "-i", str(tmp_path / "x.npy"), "--stats"]
    assert run([*command, "--output", str(result)]) is None
    assert (np.load(result) == lenet(*inputs)).all()
    shown = capsys.readouterr().out
    assert "instructions" in shown
    assert "cacheless: " in shown
    with pytest.raises(UsageError, match="no threads"):
        run([*command, "--threads", "2"])


def test_widths_without_an_instruction_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    layer = torch.nn.Linear(21, 5)
    x = torch.randn(3, 21)
    program = fewbit.quantize(layer, "w3a5", example_inputs=(x,))
    artifact = fewbit.compile(program, target="vexii:rv64")
    said = capsys.readouterr().err
    assert "activations of 5 bits are stored in 8 and weights of 3 bits are stored in 4" in said
    assert is_equal(artifact, program, [x.numpy()])


class Block(torch.nn.Module):
    """Convolutions of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, (3, 2), stride=(2, 1), padding=(1, 0))
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.grouped = torch.nn.Conv2d(8, 12, 3, padding=2, dilation=2, groups=2)
        self.pointwise = torch.nn.Conv2d(12, 7, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        return self.pointwise(self.grouped(torch.relu(self.depthwise(x))))


@pytest.mark.parametrize(
    "recipe",
    ["w1a1", *(pytest.param(r, marks=pytest.mark.slow) for r in ("w8a8", "w4a4", "w2a3", "w1a8"))],
)
def test_convolutions_of_all_kinds(recipe: str) -> None:
    manual_seed(0)
    x = torch.randn(2, 3, 9, 8)
    program = fewbit.quantize(Block(), recipe, example_inputs=(x,))
    assert is_equal(fewbit.compile(program, target="vexii"), program, [x.numpy()])


def test_targets() -> None:
    with pytest.raises(UsageError, match="no target 'vexii:rv16'"):
        fewbit.compile(model("zoo:lenet", "w8a8"), target="vexii:rv16")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["vexii", "vexii:rv64"])
@pytest.mark.parametrize("recipe", ["w8a8", "w4a4", "w2a2", "w1a1", "w5a6", "w1.58a8"])
@pytest.mark.parametrize("name", ["zoo:ds-cnn", "zoo:resnet8"])
def test_whole_networks(name: str, recipe: str, target: str) -> None:
    program = model(name, recipe)
    inputs = made_up_inputs(program, dynamic=1)
    assert is_equal(fewbit.compile(program, target=target), program, inputs)


def test_inspecting_an_artifact(lenet: Artifact, capsys: pytest.CaptureFixture[str]) -> None:
    run(["inspect", str(lenet.folder)])
    summary = capsys.readouterr().out
    assert "for vexii" in summary
    assert "kernel.000_conv1" in summary
    run(["inspect", str(lenet.folder), "--asm", "dot_a8w4_1x4*"])
    assert "dot8x4 " in capsys.readouterr().out
    with pytest.raises(UsageError, match="no function 'conv9'"):
        run(["inspect", str(lenet.folder), "--asm", "conv9"])


def test_scales_of_groups_are_left_to_loops(capsys: pytest.CaptureFixture[str]) -> None:
    manual_seed(0)
    layer, x = torch.nn.Linear(64, 5), torch.randn(3, 64)
    scheme = {"default": {"weight": 4, "act": 8, "granularity": "group", "group": 32}}
    program = fewbit.quantize(layer, scheme, example_inputs=(x,))
    artifact = fewbit.compile(program, target="vexii")
    assert "scales of groups" in capsys.readouterr().err
    assert is_equal(artifact, program, [x.numpy()])
    assert "dot" not in artifact.runner.events.counts
