"""Whole programs for GPUs, executed on the processor: the numbers are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.errors import FewbitWarning, ShapeError, UnsupportedError, UsageError
from fewbit.kernels.cuda.arch import HOPPER, TURING, Arch
from fewbit.language.places import end_of
from fewbit.pipeline.compilation import Compilation
from fewbit.targets.compile import lower
from fewbit.targets.cuda.settings import GpuSettings
from fewbit.targets.cuda.target import compile_cuda
from tests.language.checkpoints import family_folder
from tests.targets.cuda.emulate import COMPILER, Emulated

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
RNG = np.random.default_rng(0)


def compile_model(
    model: object, recipe: Any = None, arch: Arch = HOPPER, **options: Any
) -> tuple[Compilation, fewbit.Program]:
    program = model if isinstance(model, fewbit.Program) else fewbit.import_model(model)
    if recipe is not None:
        program = fewbit.quantize(program, recipe)
    return compile_cuda(program, arch, **options), program


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@needs_compiler
@pytest.mark.parametrize("recipe", [None, "w4a8", "w1a8"])
def test_lenet_in_any_batch(recipe: str | None, tmp_path: Path) -> None:
    compilation, program = compile_model("zoo:lenet", recipe, sizes=[(3, 1, 28, 28)])
    x = RNG.standard_normal((3, 1, 28, 28)).astype(np.float32)
    emulated = Emulated(compilation, tmp_path)
    (found,), (expected,) = emulated(x), program.run(x)
    if recipe is None:
        assert relative(found, expected) < 1e-6
    else:
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(emulated(x)[0], found)  # what a run leaves behind changes nothing


@needs_compiler
def test_halves_flow_from_layer_to_layer(tmp_path: Path) -> None:
    sizes = [(2, 3, 32, 32)]
    compilation, program = compile_model("zoo:resnet8", precision="f16", sizes=sizes)
    layers = [s for s in compilation.module.described if s["step"] == "conv2d"]
    assert {s["dtype"] for s in layers} == {"f16"}
    residual = [s for s in layers if "add" in s["operands"]]
    assert residual
    assert all("bias" in s["operands"] for s in residual)
    x = RNG.standard_normal(sizes[0]).astype(np.float32)
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 2e-3


@needs_compiler
def test_rotated_layers(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 8))
    x = RNG.standard_normal((3, 64)).astype(np.float32)
    imported = fewbit.import_model(net, (from_numpy(x),))
    compilation, program = compile_model(imported, "w8a8h32")
    (found,), (expected,) = Emulated(compilation, tmp_path)(x), program.run(x)
    np.testing.assert_array_equal(found, expected)


@needs_compiler
def test_a_language_model(tmp_path: Path) -> None:
    compilation, program = compile_model("zoo:llama-tiny", sizes=[(1, 6)])
    tokens = RNG.integers(0, 512, (1, 6))
    assert relative(Emulated(compilation, tmp_path)(tokens)[0], program.run(tokens)[0]) < 1e-5


class Cache(torch.nn.Module):
    """Writes to a buffer at a position that only a run knows."""

    kept: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(1, 8, 4))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.kept.index_copy_(1, position, x)
        return self.kept.sum(dim=1)


@needs_compiler
def test_positions_that_only_a_run_knows(tmp_path: Path) -> None:
    x, position = torch.randn(1, 1, 4), torch.tensor([3])
    program = fewbit.import_model(Cache(), example_inputs=(x, position))
    compilation, _ = compile_model(program)
    emulated = Emulated(compilation, tmp_path)
    state = RNG.standard_normal((1, 8, 4)).astype(np.float32)
    for place in (0, 5, 7):
        given = [x.numpy(), np.array([place]), state]
        for found, expected in zip(emulated(*given), program.run(*given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


ELEMENTWISE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "softmax": lambda x: torch.softmax(x, 1),
    "norm": lambda x: torch.nn.functional.layer_norm(x, (96,)),
    "sum of all": lambda x: x.sum(),
    "integers": lambda x: (x * 10).to(torch.int32) // 3 % 5,
    "bits": lambda x: (x > 0) & (x < 1),
    "f16": lambda x: (x.half() * 2 + 1).float(),
    "strided": lambda x: torch.flip(x, (0,))[::2, 1:90:3].t() + 1,
    "largest": lambda x: x.amax(0),
}


@needs_compiler
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_loops(name: str, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ELEMENTWISE[name](x)

    x = from_numpy(RNG.standard_normal((70, 96)).astype(np.float32))
    program = fewbit.import_model(Net(), example_inputs=(x,))
    compilation, _ = compile_model(program)
    found = Emulated(compilation, tmp_path)(x.numpy())[0]
    np.testing.assert_allclose(found, program.run(x.numpy())[0], rtol=2e-5, atol=1e-5)


def test_no_step_reads_what_is_being_written() -> None:
    compilation, _ = compile_model("zoo:resnet8", precision="f16")
    for step in compilation.module.described:
        if step["step"] != "loops":
            operands = dict(step["operands"])
            y = operands.pop("y")
            assert y not in operands.values()


def test_the_same_program_gives_the_same_text() -> None:
    first, second = (compile_model("zoo:mlp", "w4a8")[0].module for _ in range(2))
    assert first.source() == second.source()
    assert first.described == second.described


def test_sizes_must_fit() -> None:
    program = fewbit.import_model("zoo:mlp")
    with pytest.raises(ShapeError, match="does not fit input"):
        GpuSettings(program.signature, HOPPER, sizes=[(2, 1, 28, 27)])
    with pytest.raises(UsageError, match="1 inputs, and 2 sizes"):
        GpuSettings(program.signature, HOPPER, sizes=[(2, 1, 28, 28)] * 2)


def test_older_chips_have_other_kernels() -> None:
    steps = {
        arch.name: compile_model("zoo:mlp", arch=arch, precision="f16")[0].module.described
        for arch in (HOPPER, TURING)
    }
    assert {s["kernel"] for s in steps["turing"] if s["step"] == "conv2d"} == {"mma"}
    assert "wgmma" in {s["kernel"] for s in steps["hopper"]}


def test_what_depends_on_contents_is_refused() -> None:
    text = """
    func.func @main(%n: tensor<index>) -> tensor<index> {
      %i = tensor.extract %n[] : tensor<index>
      %c = arith.constant 3 : index
      %b = arith.cmpi slt, %i, %c : index
      %r = scf.if %b -> (tensor<index>) {
        scf.yield %n : tensor<index>
      } else {
        %t = tensor.from_elements %c : tensor<index>
        scf.yield %t : tensor<index>
      }
      func.return %r : tensor<index>
    }"""
    with pytest.raises(UnsupportedError, match="contain"):
        compile_model(fewbit.Program.parse(text))


class Chooses(torch.nn.Module):
    """Reads one row more than a number in the input says."""

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        return torch.relu(x[: end_of(count, 1, x.shape[0])]).sum(0)


def test_sizes_that_only_a_run_knows_are_refused_by_name() -> None:
    program = fewbit.import_model(Chooses(), (torch.randn(6, 4), torch.tensor(3)))
    with pytest.raises(UnsupportedError, match="contain, not only on their shapes") as caught:
        lower(program, "kernel", "cuda")
    assert caught.value.place is not None
    assert caught.value.place.op == "tensor.extract_slice"
    assert caught.value.place.file is not None


def import_steps(folder: Path, family: str, **options: Any) -> fewbit.Program:
    family_folder(folder, family)
    with pytest.warns(FewbitWarning):
        return fewbit.import_model(folder, context=64, steps=True, **options)


@needs_compiler
@pytest.mark.parametrize(
    ("family", "cache", "calls"),
    [
        ("llama", "f16", 2),
        ("mistral", "f32", 2),
        pytest.param("gemma2", "f16", 0, marks=pytest.mark.slow),
        pytest.param("llama", "q8", 0, marks=pytest.mark.slow),
    ],
)
def test_steps_of_a_decoder(family: str, cache: str, calls: int, tmp_path: Path) -> None:
    program = import_steps(tmp_path / "model", family, cache=cache)
    compilation, _ = compile_model(program)
    kinds = [step["step"] for step in compilation.module.described]
    assert kinds.count("cached_attention") == calls
    attention = [s for s in compilation.module.described if s["step"] == "cached_attention"]
    assert all("q" in s["prologue"]["places"] and s["config"] == {"early": 1} for s in attention)
    emulated = Emulated(compilation, tmp_path)
    state = [
        np.zeros([n or 0 for n in spec.shape or ()], spec.dtype)
        for spec in program.signature.inputs[2:]
    ]
    for position, token in enumerate((5, 7, 11, 2, 9, 33)):
        given = [np.array([[token]]), np.array([position])]
        found, expected = emulated(*given, *state), program.run(*given, *state)
        assert relative(found[0], expected[0]) < 1e-5
        for ours, theirs in zip(found[1:], expected[1:], strict=True):
            assert np.abs(ours.astype(np.float32) - theirs.astype(np.float32)).max() < 2e-3
        state = list(found[1:])
