"""Constants of one number: a run writes them, or has the number."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.program.program import Program


@pytest.mark.parametrize(
    ("element", "number"), [("f32", "1.5"), ("i8", "-3"), ("i64", "7"), ("f16", "0.5")]
)
def test_a_large_splat_is_no_data_of_the_library(element: str, number: str) -> None:
    text = f"""
    func.func @main(%x: tensor<300x500x{element}>) -> (tensor<300x500x{element}>, tensor<300x500x{element}>) {{
      %c = arith.constant dense<{number}> : tensor<300x500x{element}>
      %0 = tensor.empty() : tensor<300x500x{element}>
      %1 = linalg.max ins(%x, %c : tensor<300x500x{element}>, tensor<300x500x{element}>)
        outs(%0 : tensor<300x500x{element}>) -> tensor<300x500x{element}>
      func.return %1, %c : tensor<300x500x{element}>, tensor<300x500x{element}>
    }}"""
    program = Program(fewbit.parse(text))
    artifact = fewbit.compile(program, "cpu")
    assert sum(path.stat().st_size for path in artifact.folder.glob("*.so")) < 100_000
    x = (
        np.random.default_rng(0)
        .integers(-9, 9, (300, 500))
        .astype(program.signature.inputs[0].dtype)
    )
    for found, wanted in zip(artifact.run(x), program.run(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_splat_of_gigabytes_is_compiled() -> None:
    kind = "tensor<20000x20000xf32>"
    text = f"""
    func.func @main() -> {kind} {{
      %c = arith.constant dense<1.0> : {kind}
      func.return %c : {kind}
    }}"""
    artifact = fewbit.compile(Program(fewbit.parse(text)), "cpu")
    assert artifact.manifest.outputs[0].shape == (20000, 20000)
