"""Whole networks on the accelerator and its host: the interpreter's results, to the bit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fewbit
from fewbit.base.json_output import json_text
from fewbit.errors import UsageError
from fewbit.models import zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.passes.quant.integer_only import integer_only
from fewbit.program.artifact import Folder, open_folder
from fewbit.program.program import Program
from fewbit.quant.program_calibration import calibrate_program
from fewbit.targets.device import Device, Execution
from fewbit.targets.gemmini.listing import list_commands
from fewbit.targets.gemmini.simulate import GemminiSimulator, Layered
from fewbit.targets.gemmini.target import Gemmini
from fewbit.targets.registry import find_target
from tests.targets.gemmini.unicorn_machine import OnUnicorn

Array = np.ndarray[Any, Any]


@dataclass
class Compiled:
    program: Program
    folder: Folder
    x: Array
    execution: Execution

    @property
    def wanted(self) -> Array:
        return self.program.run(self.x)[0]


def example(name: str, batch: int = 1, seed: int = 9) -> Array:
    (x,) = zoo()[name].example_inputs(batch, seed=seed)
    return x.numpy()


def compiled(program: Program, folder: Path, x: Array) -> Compiled:
    fewbit.compile(program, target="gemmini", output=folder, name="net")
    opened = open_folder(folder)
    return Compiled(program, opened, x, Gemmini().run(opened, [x]))


def quantized(name: str, recipe: str) -> Program:
    return fewbit.quantize(fold_batch_norm(fewbit.import_model(f"zoo:{name}")), recipe)


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compile with the seed's scheme, and two samples of a batch that only the run knows."""
    program = quantized("lenet", "[[8,6,6,4,4],[8,8,8,8,8]]")
    return compiled(program, tmp_path_factory.mktemp("lenet") / "net", example("lenet", 2))


def test_lenet(lenet: Compiled) -> None:
    assert np.array_equal(lenet.execution.outputs[0], lenet.wanted)
    names = [layer.name for layer in lenet.execution.events.layers]
    assert names == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    assert lenet.execution.events.counts["macs"] == 2 * 281_640


def test_a_run_begins_with_one_flush(lenet: Compiled) -> None:
    """Programs written with gemmini.h do so: funct 7, and nothing to skip."""

    class Noting(Layered):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.sent: list[tuple[int, int, int]] = []

        def execute(self, funct: int, rs1: int, rs2: int, memory: Any) -> int:
            self.sent.append((funct, rs1, rs2))
            return super().execute(funct, rs1, rs2, memory)

    class Simulator(GemminiSimulator):
        layered = Noting

    simulator = Simulator(lenet.folder)
    (y,) = simulator.run([lenet.x]).outputs
    assert np.array_equal(y, lenet.wanted)
    sent = cast(Noting, simulator.model).sent
    assert sent[0] == (7, 0, 0)
    assert [command[0] for command in sent].count(7) == 1
    counts = lenet.execution.events.counts
    assert counts["commands"] == len(sent)
    assert sum(layer.counts["commands"] for layer in lenet.execution.events.layers) == len(sent) - 1


def test_what_sends_nothing_does_not_flush(tmp_path: Path) -> None:
    net = compiled(fewbit.import_model("zoo:lenet"), tmp_path / "net", example("lenet"))
    assert net.execution.events.counts["commands"] == 0


def test_unicorn_sends_the_same_commands(lenet: Compiled) -> None:
    pytest.importorskip("unicorn", reason="unicorn is not installed: pip install 'fewbit[dev]'")
    other = OnUnicorn(lenet.folder)
    (y,), _ = other.execute([lenet.x])
    assert np.array_equal(y, lenet.wanted)
    assert other.model.events.commands == lenet.execution.events.counts["commands"]


def test_resnet8(tmp_path: Path) -> None:
    net = compiled(quantized("resnet8", "w8a8"), tmp_path / "net", example("resnet8"))
    assert np.array_equal(net.execution.outputs[0], net.wanted)
    assert net.execution.events.counts["macs"] == 12_501_632


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["w8a8", "w4a4", "w1a1", "[[8,8,3,1.58,1],[8,8,6,4,5]]"])
def test_few_bits_are_bytes_with_their_own_scales(recipe: str, tmp_path: Path) -> None:
    net = compiled(quantized("lenet", recipe), tmp_path / "net", example("lenet", 3))
    assert np.array_equal(net.execution.outputs[0], net.wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ds-cnn", "mlp", "kws-conv1d"])
def test_what_the_accelerator_cannot_run_is_the_hosts(name: str, tmp_path: Path) -> None:
    net = compiled(quantized(name, "w8a8"), tmp_path / "net", example(name))
    np.testing.assert_allclose(net.execution.outputs[0], net.wanted, rtol=1e-5, atol=1e-6)


def integers(name: str, recipe: str) -> Program:
    """A network on integers from the first layer to the last."""
    program = fold_batch_norm(fewbit.import_model(f"zoo:{name}"))
    data = [(example(name, seed=seed),) for seed in range(2)]
    return integer_only(fewbit.quantize(program, recipe, calibrate_program(program, data, recipe)))


def test_one_multiplier_is_the_accelerators(tmp_path: Path) -> None:
    program = integers("lenet", "w8a8-tensor-static")
    net = compiled(program, tmp_path / "net", 3 * example("lenet"))
    assert np.array_equal(net.execution.outputs[0], net.wanted)
    kinds = {layer.name: layer.counts for layer in net.execution.events.layers}
    # Bytes leave, and no sums: 6 channels of 12 x 12 pixels, which are pooled already.
    assert list(kinds) == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    assert kinds["conv1"]["bytes written"] == 6 * 12 * 12
    assert kinds["conv1"]["commands"] < 20


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["w8a8-static", "w8a8-tensor-static", "w4a4-static"])
def test_resnet8_on_integers(recipe: str, tmp_path: Path) -> None:
    net = compiled(integers("resnet8", recipe), tmp_path / "net", example("resnet8"))
    assert np.array_equal(net.execution.outputs[0], net.wanted)


def test_legal_layers() -> None:
    target = find_target("gemmini")
    assert isinstance(target, Device)
    legal = target.legalize(quantized("lenet", "[[8,6,6,4,4],[8,8,8,8,8]]"))
    assert legal.on_host == ()
    assert "layer 'conv2': weights of 6 bits are stored in 8" in legal.notices
    depthwise = target.legalize(quantized("ds-cnn", "w8a8"))
    assert depthwise.on_host
    assert any("depthwise" in notice for notice in depthwise.notices)


def test_estimates_say_that_they_are_not_validated(lenet: Compiled) -> None:
    (estimate,) = Gemmini().estimate(lenet.folder, lenet.execution.events)
    assert "unvalidated" in estimate.error
    assert [layer.name for layer in estimate.layers] == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    for layer in estimate.layers:
        assert 0 < (layer.utilization or 0) <= 1
        assert layer.bound in ("compute", "memory")
    counted = lenet.execution.events.layers
    moved = [each.counts["bytes read"] + each.counts["bytes written"] for each in counted]
    assert [layer.bytes for layer in estimate.layers] == moved


def test_commands_are_shown(lenet: Compiled) -> None:
    seen = list_commands(lenet.folder)
    shown = seen.shown
    assert isinstance(shown, str)
    assert shown.startswith("start of a run:\n  flush\n\nconv1: ")
    assert "conv1: conv2d of x, weight, y; 698 commands, 86,400 MACs, for each sample" in shown
    assert "loop_ws.bounds pad_i=15, pad_j=8, i=1, j=8, k=16" in shown
    printed: dict[str, Any] = json.loads(json_text(seen.plain))
    assert printed["start"] == ["flush"]
    streams = printed["streams"]
    assert [stream["layer"] for stream in streams] == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    assert sum(len(stream["commands"]) for stream in streams) == 1029


def test_arrays_have_some_sizes() -> None:
    with pytest.raises(UsageError, match="no target 'gemmini:large'"):
        fewbit.compile("zoo:lenet", target="gemmini:large")


@pytest.mark.slow
def test_a_smaller_array(tmp_path: Path) -> None:
    program, x = quantized("lenet", "w8a8"), example("lenet")
    fewbit.compile(program, target="gemmini:8x8", output=tmp_path / "net")
    execution = Gemmini().run(open_folder(tmp_path / "net"), [x])
    assert np.array_equal(execution.outputs[0], program.run(x)[0])
    assert execution.events.counts["computes"] > 542
