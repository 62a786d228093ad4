"""Inputs, outputs and weights as the memory of a caller."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import func

from fewbit.errors import UnsupportedError
from fewbit.passes.memory.bind_memory import bind_memory
from fewbit.program.program import Program
from fewbit.program.weight_image import ALIGNMENT

TEXT = """
mico.constant @w : tensor<2x3xf32> = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]>
mico.constant @unused : tensor<9xf32> = dense<0.0>
func.func @main(%x: tensor<?x3xf32>, %k: i64) -> (tensor<2x3xf32>, tensor<2x3xf32>, i64, tensor<?x3xf32>) {
  %a = mico.get_constant @w : tensor<2x3xf32>
  %b = mico.get_constant @w : tensor<2x3xf32>
  func.return %a, %b, %k, %x : tensor<2x3xf32>, tensor<2x3xf32>, i64, tensor<?x3xf32>
}
"""


def entry(program: Program) -> func.FuncOp:
    (result,) = [op for op in program.module.body.block.ops if isinstance(op, func.FuncOp)]
    return result


def test_function_takes_memory_and_gives_nothing() -> None:
    program = Program.parse(TEXT)
    image = bind_memory(program, entry(program))
    types = entry(program).function_type
    assert [str(type) for type in types.inputs] == [
        "memref<?x3xf32>", "memref<i64>",
        "memref<2x3xf32>", "memref<2x3xf32>", "memref<i64>", "memref<?x3xf32>",
        f"memref<{ALIGNMENT}xi8>",
    ]  # fmt: skip
    assert list(types.outputs) == []
    program.module.verify()
    assert image.nbytes == ALIGNMENT


def test_weight_is_stored_once_and_only_if_used() -> None:
    program = Program.parse(TEXT)
    image = bind_memory(program, entry(program))
    assert [placed.name for placed in image.entries] == ["w"]
    assert np.frombuffer(image.tobytes()[:24], np.float32).tolist() == [1, 2, 3, 4, 5, 6]
    assert "mico.constant" not in str(program.module)


def test_type_without_memory_is_refused() -> None:
    program = Program.parse("""
func.func @main(%x: tuple<f32, f32>) -> tuple<f32, f32> { func.return %x : tuple<f32, f32> }""")
    with pytest.raises(UnsupportedError, match="C has no type for"):
        bind_memory(program, entry(program))
