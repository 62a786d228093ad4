"""Whole modules: calls, types, weights, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fewbit.errors import Error, ParseError, ShapeError, UnsupportedError, UsageError
from fewbit.frontends import import_model
from fewbit.frontends.stablehlo import import_stablehlo
from fewbit.ir.layers import layers
from tests.frontends.stablehlo.modules import imported, module, names

DENSE = """
func.func public @main(%x: tensor<2x3xf32> loc("x"), %w: tensor<3x4xf32> loc("p['fc']['kernel']"))
    -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_functions_are_inlined_with_their_constants() -> None:
    text = """
    func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %0 = call @twice(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = call @twice(%c, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @twice(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.add %a, %b : tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    program = import_stablehlo(text.encode())
    first, second = program.run(np.array([3, 4], np.float32))
    assert first.tolist() == [4, 6]
    assert second.tolist() == [2, 4]
    assert names(program, "func").count("call") == 0


def test_chlo_is_legalized() -> None:
    program = imported(
        ["4xf32"], "%0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>", "%0 : tensor<4xf32>"
    )
    from math import erf

    x = np.array([-2, -0.5, 0, 1], np.float32)
    np.testing.assert_allclose(program.run(x)[0], [erf(v) for v in x], rtol=1e-6, atol=1e-7)


def test_weights_beside_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dense.mlir"
    path.write_text(DENSE)
    assert len(import_model(path).signature.inputs) == 2
    save_file({"fc.kernel": W}, path.with_suffix(".safetensors"))
    program = import_model(path)
    assert list(layers(program.module)) == ["fc"]
    assert str(program.signature) == "main(x: 2x3xf32) -> (output0: 2x4xf32)"
    np.testing.assert_array_equal(program.run(X)[0], X @ W)


def test_bytecode_is_read(tmp_path: Path) -> None:
    import subprocess

    from fewbit.toolchain.tools import tool_path

    path = tmp_path / "dense.mlirbc"
    tool = tool_path("torch-mlir-opt")
    assert tool is not None
    (tmp_path / "dense.txt").write_text(DENSE)
    subprocess.run([tool, tmp_path / "dense.txt", "--emit-bytecode", "-o", path], check=True)
    np.testing.assert_array_equal(import_model(path).run(X, W)[0], X @ W)


def test_large_constants_are_not_in_the_text() -> None:
    data = np.arange(4096, dtype=np.float32)
    body = (
        f'%c = stablehlo.constant dense<"0x{data.tobytes().hex()}"> : tensor<4096xf32>\n'
        "%0 = stablehlo.subtract %arg0, %c : tensor<4096xf32>"
    )
    program = imported(["4096xf32"], body, "%0 : tensor<4096xf32>")
    assert len(program.text()) < 2000
    assert not program.run(data)[0].any()


def test_unsigned_integers_inside_are_unsigned() -> None:
    body = """
    %0 = stablehlo.convert %arg0 : (tensor<3xi32>) -> tensor<3xui8>
    %c = stablehlo.constant dense<3> : tensor<3xui8>
    %1 = stablehlo.divide %0, %c : tensor<3xui8>
    %2 = stablehlo.compare GT, %0, %c : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xi1>
    %3 = stablehlo.shift_right_logical %0, %c : tensor<3xui8>
    %4 = stablehlo.maximum %1, %3 : tensor<3xui8>
    %5 = stablehlo.convert %4 : (tensor<3xui8>) -> tensor<3xf32>
    %6 = stablehlo.remainder %0, %c : tensor<3xui8>
    %7 = stablehlo.convert %6 : (tensor<3xui8>) -> tensor<3xi32>"""
    results = "%5, %2, %7 : tensor<3xf32>, tensor<3xi1>, tensor<3xi32>"
    program = imported(["3xi32"], body, results)
    x = np.array([200, 2, 255], np.int32)
    first, second, third = program.run(x)
    assert first.tolist() == [66, 0, 85]
    assert second.tolist() == [True, False, True]
    assert third.tolist() == [2, 2, 0]


REFUSED = {
    "complex numbers": (
        ["4xf32"],
        "%0 = stablehlo.complex %arg0, %arg0 : tensor<4xcomplex<f32>>\n"
        "%1 = stablehlo.abs %0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>\n"
        "%2 = stablehlo.cholesky %arg1 : tensor<2x2xf32>",
        "%1 : tensor<4xf32>",
        ("stablehlo.complex", "stablehlo.abs", "stablehlo.cholesky"),
    ),
    "calls of other code": (
        ["4xf32"],
        '%0 = stablehlo.custom_call @lapack(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc("f/solve")',
        "%0 : tensor<4xf32>",
        ('stablehlo.custom_call "lapack": f/solve',),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_named_all_of_it(case: str) -> None:
    arguments, body, results, words = REFUSED[case]
    with pytest.raises(UnsupportedError) as caught:
        imported([*arguments, "2x2xf32"], body, results)
    assert all(word in str(caught.value) for word in words)


def test_dynamic_sizes_are_refused() -> None:
    text = module(["?xf32"], "%0 = stablehlo.abs %arg0 : tensor<?xf32>", "%0 : tensor<?xf32>")
    with pytest.raises(UnsupportedError, match="dynamic size"):
        import_stablehlo(text)


def test_unsigned_inputs_are_refused() -> None:
    text = module(["4xui8"], "%0 = stablehlo.not %arg0 : tensor<4xui8>", "%0 : tensor<4xui8>")
    with pytest.raises(UnsupportedError, match="unsigned"):
        import_stablehlo(text)


def test_errors_in_the_text_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(DENSE.replace("stablehlo.dot_general", "stablehlo.dot_generol"))
    with pytest.raises(ParseError) as caught:
        import_model(path)
    assert f"{path}:4:8" in str(caught.value)


def test_weights_must_fit() -> None:
    with pytest.raises(ShapeError, match=r"'fc' is tensor<2x2xf32>"):
        import_stablehlo(DENSE.encode(), {1: ("fc", np.zeros((2, 2), np.float32))})
    with pytest.raises(UsageError, match="2 arguments"):
        import_stablehlo(DENSE.encode(), {5: ("fc", W)})


def test_an_entry_is_needed() -> None:
    text = DENSE.replace("public @main", "private @other")
    with pytest.raises(Error, match="no function to start with"):
        import_stablehlo(text.encode())


def test_recursion_is_refused() -> None:
    text = """
    func.func public @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    with pytest.raises(UnsupportedError, match="calls itself"):
        import_stablehlo(text.encode())
