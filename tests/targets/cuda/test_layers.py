"""Few-bit products, attention and first convolutions inside programs, executed on the processor."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.kernels.cuda.arch import AMPERE, HOPPER, TURING, Arch
from fewbit.pipeline.compilation import Compilation
from tests.targets.cuda.emulate import COMPILER, Emulated
from tests.targets.cuda.test_programs import compile_model, relative

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
RNG = np.random.default_rng(0)


def slow(*values: object) -> object:
    """Parameters of a test that is like others, and left out of quick runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def steps_of(compilation: Compilation) -> list[str]:
    return [step["step"] for step in compilation.module.described]


class Linears(nn.Module):
    """Rows of 288 values, which fill no unit of the kernel, and of 128."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(288, 128), nn.Linear(128, 24, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


@pytest.mark.parametrize(
    "recipe", ["w4a8", slow("w1a8"), slow("w1.58a8"), slow("w3a4"), slow("w6a8")]
)
def test_few_bit_weights_stay_few_bits_and_sums_exact(recipe: str, tmp_path: Path) -> None:
    x = RNG.standard_normal((3, 288)).astype(np.float32)
    program = fewbit.import_model(Linears(), example_inputs=(from_numpy(x),))
    compilation, program = compile_model(program, recipe)
    assert steps_of(compilation).count("few_bit") == 2
    np.testing.assert_array_equal(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0])


@pytest.mark.parametrize(
    ("recipe", "precision", "tolerance"),
    [
        slow({"default": "w4a8g64", "layers": {"first": "w4a8g96"}}, "f32", 1e-5),
        ("w4a8g32", "f32", 1e-5),
        slow({"default": "w8a8g128", "layers": {"first": "w8a4"}}, "f32", 1e-5),
        slow("w4afp", "f16", 2e-3),
        ("w4afpg32", "f16", 2e-3),
        slow("w8afpg32", "f16", 2e-3),
        slow("w1.58afp", "f16", 2e-3),
    ],
)
def test_scales_of_groups_and_float_activations(
    recipe: object, precision: str, tolerance: float, tmp_path: Path
) -> None:
    x = RNG.standard_normal((2, 5, 288)).astype(np.float32)
    program = fewbit.import_model(Linears(), example_inputs=(from_numpy(x),))
    compilation, program = compile_model(program, recipe, precision=precision)
    steps = [step for step in compilation.module.described if step["step"] == "few_bit"]
    assert len(steps) == (1 if "96" in str(recipe) else 2)
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < tolerance


@pytest.mark.slow
def test_many_rows_are_multiplied_as_bytes() -> None:
    x = torch.zeros(65, 288)
    program = fewbit.import_model(Linears(), example_inputs=(x,))
    assert "few_bit" not in steps_of(compile_model(program, "w4a8")[0])
    assert "few_bit" not in steps_of(compile_model(program, "w4afp", precision="f16")[0])


def test_packed_weights_are_as_small_as_they_should_be() -> None:
    program = fewbit.import_model(nn.Linear(256, 512), example_inputs=(torch.zeros(1, 256),))
    sizes = {
        recipe: compile_model(program, recipe)[0].module.weights.nbytes
        for recipe in ("w4a8", "w8a8")
    }
    assert sizes["w4a8"] < 256 * 512 // 2 + 8192
    assert sizes["w8a8"] > 256 * 512


class Attended(nn.Module):
    """Projections, attention, and a projection again."""

    def __init__(
        self, width: int = 64, heads: int = 4, causal: bool = False, joined: bool = True
    ) -> None:
        super().__init__()
        self.heads, self.causal, self.joined = heads, causal, joined
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = (
            y.permute(2, 0, 3, 1, 4) if self.joined else (t.transpose(1, 2) for t in y.unbind(2))
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("arch", [HOPPER, slow(AMPERE), slow(TURING)], ids=lambda a: a.name)
def test_attention_is_one_call(causal: bool, arch: Arch, tmp_path: Path) -> None:
    x = RNG.standard_normal((2, 19, 64)).astype(np.float32)
    program = fewbit.import_model(Attended(causal=causal), (from_numpy(x),))
    compilation, _ = compile_model(program, arch=arch, precision="f16")
    steps = steps_of(compilation)
    has_triton = find_spec("triton") is not None
    assert ("attention" in steps) == (arch is HOPPER or (arch is AMPERE and has_triton))
    if arch is HOPPER:  # what the projection gives is read where it lies
        assert steps == ["loops", "conv2d", "attention", "conv2d", "loops"]
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 4e-3


@pytest.mark.slow
def test_heads_that_are_split_one_by_one(tmp_path: Path) -> None:
    x = RNG.standard_normal((2, 19, 64)).astype(np.float32)
    program = fewbit.import_model(Attended(joined=False), (from_numpy(x),))
    compilation, _ = compile_model(program, precision="f16")
    assert steps_of(compilation) == ["loops", "conv2d", "attention", "conv2d", "loops"]
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 4e-3


@pytest.mark.slow
def test_torchs_own_module(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attention(x, x, x, need_weights=False)[0]

    x = RNG.standard_normal((2, 19, 64)).astype(np.float32)
    program = fewbit.import_model(Net().eval(), (from_numpy(x),))
    compilation, _ = compile_model(program, precision="f16")
    assert "attention" in steps_of(compilation)
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 4e-3


class Scaled(nn.Module):
    """Another scale, fewer heads of keys, more keys than queries."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, scale=0.3, enable_gqa=True)


def test_other_scales_and_fewer_heads_of_keys(tmp_path: Path) -> None:
    shapes = (1, 4, 5, 16), (1, 2, 21, 16), (1, 2, 21, 16)
    given = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    program = fewbit.import_model(Scaled(), tuple(map(from_numpy, given)))
    compilation, _ = compile_model(program, precision="f16")
    assert "attention" in steps_of(compilation)
    assert relative(Emulated(compilation, tmp_path)(*given)[0], program.run(*given)[0]) < 4e-3


@pytest.mark.parametrize(
    ("k", "stride", "padding"), [(7, 2, 3), slow(3, 1, 1), slow(5, 3, 0), slow(4, 2, 1)]
)
def test_images_of_few_channels_are_spread(
    k: int, stride: int, padding: int, tmp_path: Path
) -> None:
    x = RNG.standard_normal((2, 3, 23, 20)).astype(np.float32)
    net = nn.Sequential(nn.Conv2d(3, 8, k, stride, padding), nn.ReLU())
    program = fewbit.import_model(net, (from_numpy(x),))
    compilation, _ = compile_model(program, precision="f16")
    assert steps_of(compilation)[:2] == ["unfold", "conv2d"]
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < 2e-3


def test_small_loops_are_one_launch(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.softmax(nn.functional.layer_norm(x, (96,)), 1), y + 1, y.t() * 2

    given = [RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 96), (80, 90))]
    program = fewbit.import_model(Net(), tuple(map(from_numpy, given)))
    compilation, _ = compile_model(program)
    steps = compilation.module.described
    assert len(steps) < 4
    assert {step["in_order"] for step in steps} == {True, False}
    for found, expected in zip(
        Emulated(compilation, tmp_path)(*given), program.run(*given), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(64, n, bias=False) for n in (96, 96))
        self.down = nn.Linear(96, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


@pytest.mark.parametrize(
    ("recipe", "precision", "tolerance"),
    [
        slow(None, "f16", 2e-3),
        slow("w4a8", "f32", 1e-6),
        slow("w4a8-tensor", "f32", 1e-6),
        ("w4afpg32", "f16", 2e-3),
    ],
)
def test_products_of_one_input_are_one(
    recipe: str | None, precision: str, tolerance: float, tmp_path: Path
) -> None:
    x = RNG.standard_normal((2, 64)).astype(np.float32)
    program = fewbit.import_model(Gated(), (from_numpy(x),))
    compilation, program = compile_model(program, recipe, precision=precision)
    products = [s for s in compilation.module.described if s["step"] in ("conv2d", "few_bit")]
    assert len(products) == 2
    assert relative(Emulated(compilation, tmp_path)(x)[0], program.run(x)[0]) < tolerance
