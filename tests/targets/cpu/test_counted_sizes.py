"""Sizes that only a run knows: what a library says of them, and how Python gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fewbit
from fewbit.program.program import Program
from fewbit.runtime import Artifact

CUT = """
func.func @main(%x: tensor<?x4xf32>, %count: tensor<index>) -> (
    tensor<?x4xf32> {fewbit.name = "head"}, tensor<?x4xf32> {fewbit.name = "double"}) {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x4xf32>
  %given = tensor.extract %count[] : tensor<index>
  %least = arith.minsi %given, %n : index
  %cut = arith.maxsi %least, %zero : index
  %head = tensor.extract_slice %x[0, 0] [%cut, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
  %double = mico.add(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %head, %double : tensor<?x4xf32>, tensor<?x4xf32>
}
"""
X = np.arange(24, dtype=np.float32).reshape(6, 4)


def cut(folder: Path, **options: object) -> Artifact:
    return fewbit.compile(Program.parse(CUT), "cpu", folder / "cut", **options)  # pyright: ignore


def test_library_names_them(tmp_path: Path) -> None:
    artifact = cut(tmp_path)
    assert artifact.manifest.options["counted"] == "head_dim0"
    header = (artifact.folder / "cut.h").read_text()
    assert " *   head_dim0\n" in header
    assert " *   double_dim0\n" not in header


def test_library_without_them_says_nothing(tmp_path: Path) -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { func.return %x : tensor<?xf32> }"
    artifact = fewbit.compile(Program.parse(text), "cpu", tmp_path / "net")
    assert "counted" not in artifact.manifest.options
    assert "only a run" not in (artifact.folder / "net.h").read_text()


def test_prepared_call_has_the_size_of_each_run(tmp_path: Path) -> None:
    count = np.array(3)
    call = cut(tmp_path).runner.prepare(X, count)
    for rows in (3, 6, 0, 100, -1):
        count[...] = rows
        head, double = call()
        np.testing.assert_array_equal(head, X[: max(rows, 0)])
        np.testing.assert_array_equal(double, 2 * X)
        assert call.own_outputs[0].shape == head.shape


def test_variants_count_as_well(tmp_path: Path) -> None:
    head, _ = cut(tmp_path, cpu_variants="auto").runner(X, np.array(2))
    np.testing.assert_array_equal(head, X[:2])
