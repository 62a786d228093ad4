"""Programs for IREE: artifacts, phases to stop at and go on from, dispatches, devices."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import ShapeError, UsageError
from fewbit.program.artifact import open_folder
from fewbit.runtime import Artifact
from fewbit.targets.compile import lower
from fewbit.targets.iree.dispatches import dispatches_of, without_locations
from tests.targets.iree.drivers import needs_vulkan

X = np.random.default_rng(0).standard_normal((3, 1, 28, 28)).astype(np.float32)


@pytest.fixture(scope="module")
def program() -> fewbit.Program:
    return fewbit.quantize(fewbit.import_model("zoo:lenet"), "w4a8")


@pytest.fixture(scope="module")
def art(program: fewbit.Program, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return fewbit.compile(program, "iree-cpu", tmp_path_factory.mktemp("iree") / "lenet")


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_files_and_manifest(art: Artifact) -> None:
    assert sorted(p.name for p in art.folder.iterdir()) == [
        "dispatches.json", "lenet.irpa", "lenet.vmfb", "manifest.json",
    ]  # fmt: skip
    manifest = art.manifest
    assert (manifest.target, manifest.recipe) == ("iree-cpu", "w4a8")
    assert manifest.inputs[0].name == "x"
    assert manifest.inputs[0].shape == (None, 1, 28, 28)
    assert set(manifest.files) == {"dispatches.json", "lenet.irpa", "lenet.vmfb"}


def test_any_batch(art: Artifact, program: fewbit.Program) -> None:
    for batch in (1, 3):
        assert relative(art(X[:batch]), program.run(X[:batch])[0]) < 1e-6


def test_threads_and_devices_give_the_same_bits(art: Artifact) -> None:
    alone = art(X)
    for how in ({"threads": 2}, {"device": "local-task"}, {"device": "local-task", "threads": 3}):
        np.testing.assert_array_equal(art(X, **how), alone)


def test_calls_at_the_same_time(art: Artifact) -> None:
    expected = art(X)
    with ThreadPoolExecutor(4) as pool:
        for call in [pool.submit(art, X) for _ in range(16)]:
            np.testing.assert_array_equal(call.result(), expected)


def test_wrong_inputs_are_refused(art: Artifact) -> None:
    with pytest.raises(ShapeError, match="input 'x' is 3x1x28x9"):
        art(X[..., :9])
    with pytest.raises(ShapeError, match="float64"):
        art(X.astype(np.float64))


def test_sizes_that_must_agree_are_asserted() -> None:
    text = """
    func.func @main(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %c = mico.add(%a, %b) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %c : tensor<?x4xf32>
    }"""
    artifact = fewbit.compile(fewbit.Program.parse(text), "iree-cpu")
    a = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(artifact(a, a), a + a)
    with pytest.raises(ShapeError, match="do not fit together"):
        artifact(a, np.ones((3, 4), np.float32))


def test_a_changed_file_is_noticed(art: Artifact, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in art.folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    with (copy / "lenet.irpa").open("r+b") as file:
        file.seek(20_000)
        file.write(b"\x7f")
    with pytest.raises(fewbit.errors.StoreError):
        fewbit.load(copy)(X)


@pytest.mark.slow
def test_stages_have_texts(program: fewbit.Program) -> None:
    seen: dict[str, str] = {}
    fewbit.compile(program, "iree-cpu", name="net", watch=seen.__setitem__)
    assert list(seen) == ["mico", "kernel", "linalg", "source", "flow", "stream", "hal", "vm"]
    assert "linalg.conv_2d_nhwc_hwcf" in seen["linalg"]
    assert "flow.executable" in seen["flow"]
    assert "loc(" not in seen["flow"]
    assert "stream.executable" in lower(program, "stream", "iree-cpu")


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "phase", [pytest.param("flow", marks=SLOW), "stream", pytest.param("hal", marks=SLOW)]
)
def test_stop_and_go_on(phase: str, program: fewbit.Program, art: Artifact, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    stopped = fewbit.compile(program, "iree-cpu", begun, name="net", compile_to=phase)
    assert sorted(p.name for p in begun.iterdir()) == ["manifest.json", "net.irpa", "net.mlir"]
    with pytest.raises(UsageError, match=f"after IREE's phase '{phase}'"):
        stopped(X)
    finished = fewbit.compile(str(begun), "iree-cpu", tmp_path / "done")
    np.testing.assert_array_equal(finished(X), art(X))
    with pytest.raises(UsageError, match="begun for iree-cpu"):
        fewbit.compile(str(begun), "iree-vulkan")


def test_dispatches(art: Artifact, capsys: pytest.CaptureFixture[str]) -> None:
    dispatches = dispatches_of(open_folder(art.folder))
    macs: dict[str, int] = {}
    for each in dispatches:
        macs[str(each.layer)] = macs.get(str(each.layer), 0) + each.macs
    layers = {
        "conv1": 6 * 24 * 24 * 25 * 2,  # its one channel has got another, of zeros
        "conv2": 16 * 8 * 8 * 150,
        "fc1": 128 * 256,  # outputs are in tiles of 16
        "fc2": 96 * 120,
        "fc3": 16 * 84,
    }
    assert {name: macs[name] for name in layers} == layers
    assert all(each.bytes > 0 for each in dispatches)
    assert guarded(run, ["inspect", str(art.folder), "--dispatches", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["dispatches"]) == len(dispatches)
    assert guarded(run, ["inspect", str(art.folder), "--dispatches"]) == 0
    assert "a run" in capsys.readouterr().out


def test_locations_are_taken_out() -> None:
    text = 'a loc(callsite("x"("f":1:2) at "g)":3:4)) b {c = "loc"} loc(unknown)\nd'
    assert without_locations(text) == 'a b {c = "loc"}\nd'


def test_options_of_other_targets_are_refused(program: fewbit.Program) -> None:
    with pytest.raises(UsageError, match="'iree-cpu' has no option 'blas'"):
        fewbit.compile(program, "iree-cpu", blas="openblas")
    with pytest.raises(UsageError, match="'cpu' has no option 'compile_to'"):
        fewbit.compile(program, "cpu", compile_to="flow")
    with pytest.raises(UsageError, match="no phase 'assembly'"):
        fewbit.compile(program, "iree-cpu", compile_to="assembly")


@needs_vulkan
@pytest.mark.slow
def test_vulkan(program: fewbit.Program) -> None:
    artifact = fewbit.compile(program, "iree-vulkan", name="net")
    assert relative(artifact(X), program.run(X)[0]) < 1e-6


@needs_vulkan
@pytest.mark.slow
def test_floats_on_vulkan() -> None:
    program = fewbit.import_model("zoo:lenet")
    artifact = fewbit.compile(program, "iree-vulkan", name="net")
    assert relative(artifact(X), program.run(X)[0]) < 1e-5
