"""Layers computed by our kernels inside of IREE's modules: the interpreter's numbers, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.cost.layers import made_up_inputs
from fewbit.errors import UsageError
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.targets.iree.dispatch_kernels import OBJECT, dispatch_kernels
from fewbit.targets.iree.dispatches import dispatches_of
from fewbit.targets.iree.target import Iree
from fewbit.targets.target import Request
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.isa import Isa, names
from tests.targets.iree.networks import WIDTHS, convolutions, linear

X = np.random.default_rng(0).standard_normal((3, 1, 28, 28)).astype(np.float32)
RECIPE = "w3a8,conv1=w5a8,fc1=w1.58a8,fc2=w1a8,fc3=w8a8"
LAYERS = ("conv1", "conv2", "fc1", "fc2", "fc3")


@pytest.fixture(scope="module")
def lenet() -> Program:
    return fewbit.quantize(fewbit.import_model("zoo:lenet"), RECIPE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile by the command line."""
    path = tmp_path_factory.mktemp("kernels") / "lenet"
    argv = ["compile", "zoo:lenet", "-r", RECIPE, "-t", "iree-cpu", "--kernels", "-o", str(path)]
    assert guarded(run, argv) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [linear, lambda: linear(25, 31), lambda: linear(3, 1), convolutions],
    ids=["linear", "linear-25", "linear-3", "convolutions"],
)
def test_every_width(make: Callable[[], Program]) -> None:
    program = make()
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, "iree-cpu", name="net", kernels=True)
    results, expected = art.run(*inputs), program.run(*inputs)
    shared = art.run(*inputs, threads=2)
    for width, a, b, c in zip(WIDTHS, results, expected, shared, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"weights of {width} bits")
        np.testing.assert_array_equal(c, b, err_msg=f"weights of {width} bits, two threads")


def test_layers_of_several_widths_and_any_batch(folder: Path, lenet: Program) -> None:
    art = fewbit.load(folder)
    for batch in (1, 3):
        expected = lenet.run(X[:batch])[0]
        np.testing.assert_array_equal(art(X[:batch]), expected)
        np.testing.assert_array_equal(art(X[:batch], threads=2), expected)


def test_layers_are_dispatches_of_kernels(folder: Path) -> None:
    dispatches = dispatches_of(open_folder(folder))
    products = {each.layer: each for each in dispatches if each.macs}
    assert {name: products[name].macs for name in LAYERS} == {
        "conv1": 6 * 24 * 24 * 25,
        "conv2": 16 * 8 * 8 * 150,
        "fc1": 120 * 256,
        "fc2": 84 * 120,
        "fc3": 840,
    }
    assert products["conv1"].ops == ("fewbit_conv2d_i8w5_f32",)
    assert products["fc1"].ops == ("fewbit_matmul_i8w2_f32",)
    assert products["fc3"].bytes == 84 + 1344 + 4 * (1 + 10 + 10 + 10)


@pytest.mark.slow
def test_stop_and_go_on(lenet: Program, folder: Path, tmp_path: Path) -> None:
    begun, later, done = (tmp_path / name for name in ("flow", "stream", "done"))
    fewbit.compile(lenet, "iree-cpu", begun, kernels=True, compile_to="flow")
    fewbit.compile(str(begun), "iree-cpu", later, compile_to="stream")
    assert (later / OBJECT).read_bytes() == (begun / OBJECT).read_bytes()
    art = fewbit.compile(str(later), "iree-cpu", done)
    np.testing.assert_array_equal(art(X), fewbit.load(folder)(X))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
def test_long_rows_are_quantized_by_two_dispatches(batch: int) -> None:
    manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3), nn.Conv2d(5, 6, 3)).eval()
    x = torch.randn(batch, 3, 64, 64)
    recipe = {"version": 1, "layers": {"0": "w8a8", "1": "w2a2", "2": "w4a8"}}
    program = fewbit.quantize(fewbit.import_model(model, (x,)), recipe)
    art = fewbit.compile(program, "iree-cpu", name="net", kernels=True)
    used = {op for each in dispatches_of(open_folder(art.folder)) for op in each.ops}
    assert {"fewbit_largest_magnitudes", "fewbit_magnitude_sums"} <= used
    expected = program.run(x.numpy())[0]
    np.testing.assert_array_equal(art(x.numpy()), expected)
    np.testing.assert_array_equal(art(x.numpy(), threads=2), expected)


@pytest.mark.parametrize("target", ["iree-cuda:sm_80", "iree-cpu:aarch64-linux-gnu"])
def test_targets_without_kernels(target: str) -> None:
    with pytest.raises(UsageError, match="there are no kernels for"):
        fewbit.compile("zoo:mlp", target, kernels=True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in names()])
def test_the_object_needs_nothing(name: str, lenet: Program) -> None:
    compilation = Iree().begin(lenet, Request("iree-cpu")).run("kernel")
    made = dispatch_kernels(compilation.program, Isa.of(name))
    assert [s.name for s in symbols(made.code) if not s.defined and s.name] == []


@pytest.mark.slow
@pytest.mark.parametrize(("target", "machine"), [("aarch64", 183), ("riscv64", 243)])
def test_other_processors(target: str, machine: int, lenet: Program) -> None:
    art = fewbit.compile(lenet, f"iree-cpu:{target}", name="net", kernels=True)
    code = (art.folder / "net.vmfb").read_bytes()
    at = code.index(b"\x7fELF")
    assert int.from_bytes(code[at + 18 : at + 20], "little") == machine
