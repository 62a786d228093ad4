from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit import __version__
from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp
from fewbit.errors import ShapeError
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder, Manifest, Tensor
from fewbit.program.program import Program
from fewbit.targets.device import Device, Estimate, Events, Execution, LegalLayer
from fewbit.targets.target import Request


class Doubling:
    def run(self, inputs: Any) -> Execution:
        return Execution((inputs[0] * 2,), Events({"additions": inputs[0].size}))


class Small(Device):
    """Has multipliers of 2, 4 and 8 bits, for linear layers."""

    widths = (2, 4, 8)

    def refusal(self, op: QuantizedLayerOp) -> str | None:
        return None if isinstance(op, BitLinearOp) else "it only multiplies matrices"

    def check(self, request: Request) -> None: ...

    def pipeline(self, request: Request) -> Pipeline:
        return Pipeline(())

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return ()

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        raise NotImplementedError

    def simulator(self, folder: Folder) -> Doubling:
        return Doubling()

    def estimate(self, folder: Folder, events: Events) -> tuple[Estimate, ...]:
        return (Estimate("small", events.counts["additions"] * 1.5, "unknown"),)


@pytest.fixture(scope="module")
def layers() -> dict[str, LegalLayer]:
    program = fewbit.quantize(fewbit.import_model("zoo:lenet"), "[[8,8,3,1.58,1],[8,8,6,4,5]]")
    legal = Small().legalize(program)
    assert legal.program is program
    assert legal.on_host == tuple(layer.name for layer in legal.layers[:2])
    assert legal.notices == tuple(each.notice for each in legal.layers if each.notice)
    return {layer.name: layer for layer in legal.layers}


def test_what_a_device_cannot_run_is_left_to_the_host(layers: dict[str, LegalLayer]) -> None:
    first = next(iter(layers.values()))
    assert first.stored_act is first.stored_weight is None
    assert first.notice == f"layer '{first.name}' runs on the host: it only multiplies matrices"


def test_widths_that_it_lacks_are_stored_wider(layers: dict[str, LegalLayer]) -> None:
    third, fourth, fifth = list(layers.values())[2:]
    assert (third.stored_act, third.stored_weight) == (8, 4)
    assert "activations of 6 bits are stored in 8 and weights of 3 bits are stored in 4" in str(
        third.notice
    )
    assert (fourth.stored_act, fourth.stored_weight, fourth.notice) == (4, 2, None)
    assert (fifth.stored_act, fifth.stored_weight) == (8, 2)
    assert third.macs == 120 * 256


def test_floats_stay_on_the_host() -> None:
    legal = Small().legalize(fewbit.import_model("zoo:lenet"))
    assert {layer.host_because for layer in legal.layers} == {"its activations are floats"}


def test_a_run_has_outputs_events_and_an_estimate(tmp_path: Path) -> None:
    tensor = Tensor(name="x", shape=(2, 3), element="f32")
    manifest = Manifest(
        name="m",
        target="small",
        compiler=__version__,
        inputs=(tensor,),
        outputs=(tensor,),
        files={},
    )
    folder = Folder(tmp_path, manifest)
    device, x = Small(), np.ones((2, 3), np.float32)
    execution = device.run(folder, [x])
    assert (execution.outputs[0] == 2).all()
    loaded = device.load(folder)
    assert (loaded(x)[0] == 2).all()
    assert loaded.estimate(execution.events)[0].cycles == 9
    with pytest.raises(ShapeError):
        loaded(x[:1])
