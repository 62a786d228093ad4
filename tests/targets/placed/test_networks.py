"""Networks of the zoo on several devices: they give what they give on one.

Integers of targets are equal, and so are floats of `cpu` and of the simulated ones; IREE's are near.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.ir.layers import layers
from fewbit.models.llama import LlamaDecode
from fewbit.program.program import Program

V3 = "cpu:x86-64-v3"
NEAR = 1e-4
"""How far IREE's floats may be, relative to the largest: a last bit can change an integer."""


@cache
def program(model: str, recipe: str | None) -> Program:
    imported = fewbit.import_model(f"zoo:{model}")
    return imported if recipe is None else fewbit.quantize(imported, recipe)


def inputs(program: Program, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    arrays: list[np.ndarray] = []
    for port in program.signature.inputs:
        shape = [size if n is None else n for n in port.shape or ()]
        is_float = port.dtype.kind == "f"
        values = rng.standard_normal(shape) if is_float else rng.integers(0, 100, shape)
        arrays.append(values.astype(port.dtype))
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "recipe", "rules"),
    [
        ("lenet", "w4a8", f"conv2={V3},fc1=gemmini,fc2=vexii"),
        ("lenet", None, f"conv2={V3},fc1=iree-cpu"),
        ("resnet8", "w8a8", f"layer2.conv1=gemmini,layer3={V3}"),
        ("vit-tiny", None, f"blocks.1=iree-cpu,blocks.2.mlp={V3}"),
        ("llama-tiny", "w4a8", f"layers.0={V3},lm_head=gemmini"),
        ("llama-tiny", "w4a8", "layers.1=iree-cpu"),
    ],
)
def test_networks_give_the_same(model: str, recipe: str | None, rules: str) -> None:
    given = program(model, recipe)
    plain, placed = fewbit.compile(given), fewbit.compile(given, place=rules)
    named = {rule.rpartition("=")[2] for rule in rules.split(",")}
    assert {part.target for part in placed.manifest.parts} == named | {"cpu"}
    for size in (2, 3):
        x = inputs(given, size)
        for actual, expected in zip(placed.run(*x), plain.run(*x), strict=True):
            if "iree-cpu" not in named:
                np.testing.assert_array_equal(actual, expected)
            else:
                assert np.abs(actual - expected).max() <= NEAR * np.abs(expected).max()


@pytest.mark.slow
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(st.data())
def test_any_placement_of_a_network(data: st.DataObject) -> None:
    """Layers of LeNet anywhere, beside the interpreter."""
    lenet = program("lenet", "w2a8")
    devices = st.sampled_from(("cpu", V3, "cpu:x86-64", "vexii", "gemmini"))
    rules = {name: data.draw(devices, label=name) for name in layers(lenet.module)}
    x = inputs(lenet, 1)
    assert np.array_equal(fewbit.compile(lenet, place=rules)(*x), lenet.run(*x)[0])


@pytest.mark.slow
def test_a_decoder_with_caches_on_two_devices() -> None:
    """One token after another: each layer's caches are where the layer is."""
    manual_seed(0)
    model = LlamaDecode(64, width=32, depth=4, heads=2, kv_heads=2, hidden=48, longest=16).eval()
    decode = fewbit.import_model(model, (torch.tensor([[3]]), torch.tensor([0])))
    plain = fewbit.compile(decode).session()
    placed = fewbit.compile(decode, place=f"layers.1={V3},layers.3={V3}").session()
    for position, token in enumerate((3, 41, 59)):
        given = np.array([[token]]), np.array([position])
        np.testing.assert_array_equal(placed(*given), plain(*given))
    assert len(plain.state) == 8
    for name, array in plain.state.items():
        np.testing.assert_array_equal(placed.state[name], array)
