"""Networks split between an accelerator and its host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.dialects.graph import SubgraphOp, TransferOp
from fewbit.ir.context import make_context
from fewbit.ir.verify import verify
from fewbit.passes.graph.outline_subgraph import OutlineSubgraph
from fewbit.passes.graph.place_devices import PlaceDevices
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.targets.gemmini.target import Gemmini
from fewbit.targets.partition import elsewhere, rejoin, transfers_of

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def program() -> Program:
    return fewbit.quantize(fewbit.import_model("zoo:lenet"), "w8a8")


@pytest.fixture(scope="module")
def x() -> Array:
    return np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)


def test_layers_are_subgraphs_on_the_device(program: Program, x: Array) -> None:
    split = Gemmini().partition(program)
    verify(split.module)
    placed = [op.sym_name.data for op in split.module.walk() if isinstance(op, SubgraphOp)]
    assert placed == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    assert np.array_equal(split.run(x)[0], program.run(x)[0])


def test_transfers_are_told(program: Program) -> None:
    found = transfers_of(Gemmini().partition(program))
    there = [t.bytes for t in found if t.target == "gemmini"]
    back = [t.bytes for t in found if t.source == "gemmini"]
    assert there == [4 * n for n in (28 * 28, 6 * 12 * 12, 256, 120, 84)]
    assert back == [4 * n for n in (6 * 24 * 24, 16 * 8 * 8, 120, 84, 10)]


def test_a_split_program_is_followed(program: Program, x: Array, tmp_path: Path) -> None:
    """Only the layers that are placed on the accelerator run there."""
    split = Program(program.module.clone(), program.store, program.recipe)
    OutlineSubgraph(scopes=("conv2",)).apply(make_context(), split.module)
    PlaceDevices(rules=("conv2=gemmini",)).apply(make_context(), split.module)
    assert elsewhere(split.module, "gemmini") == {"conv1", "fc1", "fc2", "fc3"}
    assert Gemmini().legalize(split).on_host == ("conv1", "fc1", "fc2", "fc3")
    fewbit.compile(split, target="gemmini", output=tmp_path / "net")
    execution = Gemmini().run(open_folder(tmp_path / "net"), [x])
    assert [layer.name for layer in execution.events.layers] == ["conv2"]
    assert np.array_equal(execution.outputs[0], program.run(x)[0])


def test_what_is_joined_has_no_transfers(program: Program, x: Array) -> None:
    split = Gemmini().partition(program)
    rejoin(split.module)
    assert not any(isinstance(op, TransferOp | SubgraphOp) for op in split.module.walk())
    assert np.array_equal(split.run(x)[0], program.run(x)[0])
