"""Every zoo model in channels-last layout: the same results, and hardly a transpose left."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fewbit.frontends import import_model
from fewbit.models import create, zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize

QUICK = ("lenet", "ds-cnn", "kws-conv1d")
EXTENT = {"resnet18": 32, "mobilenet-v2": 32, "squeezenet": 48}
CONVOLUTIONAL = (
    "cmsis-cnn", "ds-cnn", "kws-conv1d", "lenet", "m5", "mobilenet-v2", "resnet18", "resnet8",
    "squeezenet", "vgg",
)  # fmt: skip


def models() -> list[object]:
    """All but those that are a model of the list, only larger."""
    names = [name for name in zoo() if not name.startswith("llama-15m")]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def count(program: Program) -> Counter[str]:
    return Counter(op.name for op in program.module.walk())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", models())
def test_channels_last(name: str) -> None:
    entry = zoo()[name]
    extent = {"extent": EXTENT[name]} if name in EXTENT else {}
    imported = import_model(create(name), entry.example_inputs(2, **extent), entry.dynamic_shapes)
    x = [tensor.numpy() for tensor in entry.example_inputs(3, seed=7, **extent)]
    for recipe in (None, "w8a8", "w4a8"):
        program = imported if recipe is None else quantize(imported, recipe)
        program = run_passes(program, "inline")
        folded = fold_batch_norm(program)
        (given,), (expected,) = folded.run(*x), program.run(*x)
        np.testing.assert_allclose(given, expected, atol=2e-5 * np.abs(expected).max())
        selected = run_passes(folded, "select-kernels,propagate-layout,fuse-epilogue,cse")
        np.testing.assert_array_equal(selected.run(*x)[0], given)
        flat = run_passes(selected, "fold-flatten")
        flat.verify()
        np.testing.assert_allclose(flat.run(*x)[0], given, atol=1e-5 * np.abs(given).max())
        ops = count(flat)
        assert not any(op.startswith("mico.bit") for op in ops)
        if name not in CONVOLUTIONAL:
            continue
        assert count(selected)["mico.transpose"] <= 2
        assert ops["mico.transpose"] <= 1
        if recipe is None:
            assert not {"mico.batch_norm", "mico.relu", "mico.relu6", "mico.add"} & ops.keys()
