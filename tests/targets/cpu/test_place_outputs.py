"""Outputs are written where they are wanted, and copied only where that cannot be."""

from __future__ import annotations

import numpy as np

import fewbit
from fewbit.ir.bindings import parse_mlir
from fewbit.passes.memory.place_outputs import place_outputs
from fewbit.program.program import Program


def placed(outputs: str, body: str) -> str:
    module = parse_mlir(f"""
      func.func private @fill(memref<6xf32>)
      func.func @main({outputs}) {{
        %0 = memref.alloc() {{alignment = 64 : i64}} : memref<6xf32>
        func.call @fill(%0) : (memref<6xf32>) -> ()
        {body}
        return
      }}""")
    place_outputs(module, "main")
    assert module.operation.verify()
    return str(module)


WIDE = (
    "%1 = memref.expand_shape %0 [[0, 1]] output_shape [1, 6] : memref<6xf32> into memref<1x6xf32>"
)


def test_a_buffer_is_the_output() -> None:
    text = placed("%y: memref<6xf32>", "memref.copy %0, %y : memref<6xf32> to memref<6xf32>")
    assert "memref.copy" not in text
    assert "memref.alloc" not in text


def test_also_behind_a_dimension_that_was_dropped() -> None:
    copy = "memref.copy %1, %y : memref<1x6xf32> to memref<1x6xf32>"
    text = placed("%y: memref<1x6xf32>", f"{WIDE}\n{copy}")
    assert "memref.copy" not in text
    assert "memref.alloc" not in text


def test_a_second_output_is_copied() -> None:
    text = placed(
        "%y: memref<6xf32>, %z: memref<6xf32>",
        "memref.copy %0, %y : memref<6xf32> to memref<6xf32>\n"
        "memref.copy %0, %z : memref<6xf32> to memref<6xf32>",
    )
    assert text.count("memref.copy") == 1
    assert "memref.alloc" not in text


def test_part_of_a_buffer_is_copied() -> None:
    text = placed(
        "%y: memref<3xf32>",
        "%1 = memref.subview %0[0] [3] [1] : memref<6xf32> to memref<3xf32, strided<[1]>>\n"
        "memref.copy %1, %y : memref<3xf32, strided<[1]>> to memref<3xf32>",
    )
    assert "memref.copy" in text


def test_an_output_that_is_read_meanwhile_is_copied_to() -> None:
    text = placed(
        "%y: memref<6xf32>",
        "func.call @fill(%y) : (memref<6xf32>) -> ()\n"
        "memref.copy %0, %y : memref<6xf32> to memref<6xf32>",
    )
    assert "memref.copy" in text


def test_states_and_results_of_kernels() -> None:
    """A product that is given back twice and read once more, beside a state."""
    x, w = "tensor<1x8xf32>", "tensor<8x8xf32>"
    program = Program.parse(
        f"func.func @main(%x: {x}, %w: {w}, %s: {x}) -> ({x}, {x}, {x}) {{\n"
        f"  %y = mico.bitlinear(%x, %w) : ({x}, {w}) -> {x}\n"
        f"  %t = mico.add(%s, %y) : ({x}, {x}) -> {x}\n"
        f"  func.return %y, %t, %y : {x}, {x}, {x}\n}}"
    )
    rng = np.random.default_rng(0)
    given = [rng.normal(size=size).astype(np.float32) for size in ((1, 8), (8, 8), (1, 8))]
    results = fewbit.compile(program, name="net").run(*given, threads=2)
    for got, wanted in zip(results, program.run(*given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
