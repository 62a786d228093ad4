"""Plain MLIR, in IREE's own words: several functions, dynamic sizes, other dialects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.targets.iree.raw import is_raw_mlir
from fewbit.toolchain.tools import tool_path

TEXT = """
func.func @foo(%lhs: tensor<?x?xf32>, %rhs: tensor<?x?xf32>, %acc: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %result = linalg.matmul ins(%lhs, %rhs : tensor<?x?xf32>, tensor<?x?xf32>) outs(%acc : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %result : tensor<?x?xf32>
}
func.func @sum(%a: tensor<10xf32>, %b: tensor<10xf32>) -> tensor<10xf32> {
  %c = arith.addf %a, %b : tensor<10xf32>
  return %c : tensor<10xf32>
}
func.func @mixed(%a: tensor<2x2x3xi8>, %b: i32, %c: f32, %d: tensor<3xf16>) -> (tensor<2x2x3xi8>, i32, f32, tensor<3xf16>, tensor<f64>, tensor<2x600xi32>) {
  %e = arith.addi %b, %b : i32
  %f = arith.constant dense<1.0e-7> : tensor<f64>
  %g = arith.constant dense<7> : tensor<2x600xi32>
  return %a, %e, %c, %d, %f, %g : tensor<2x2x3xi8>, i32, f32, tensor<3xf16>, tensor<f64>, tensor<2x600xi32>
}
"""
OTHERS = {
    "stablehlo": """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}""",
    "tosa": """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tosa.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}""",
    "torch": """
func.func @f(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %y = torch.aten.tanh %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %y : !torch.vtensor<[4],f32>
}""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("raw")
    (home / "prog.mlir").write_text(TEXT)
    assert (
        guarded(
            run, ["compile", str(home / "prog.mlir"), "-t", "iree-cpu", "-o", str(home / "out")]
        )
        == 0
    )
    return home / "out"


def ran(folder: Path, *argv: str) -> int:
    return guarded(run, ["run", str(folder), *argv])


CALLS = {
    "sum": ["10xf32=0,1,2,3,4,5,6,7,8,9", "10xf32=[90,80,70,60,50,40,30,20,10,0]"],
    "foo": ["2x3xf32=[1 2 3][4 5 6.25]", "3x2xf32=1", "2x2xf32"],
    "mixed": ["2x2x3xi8=1 2 3 4 5 6 7 8 9 10 11 -12", "5", "1.5", "3xf16=0.1"],
}  # fmt: skip


@pytest.mark.parametrize("function", CALLS)
def test_the_words_are_those_of_iree_run_module(
    function: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = CALLS[function]
    options = [word for text in inputs for word in ("--input", text)]
    assert ran(folder, "--function", function, *options) == 0
    command = [str(tool_path("iree-run-module")), "--device=local-sync", f"--function={function}"]
    command += [f"--module={folder / 'prog.vmfb'}", *(f"--input={text}" for text in inputs)]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert capsys.readouterr().out == theirs


def test_inputs_from_files(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.arange(10, dtype=np.float32))
    assert (
        ran(folder, "--function", "sum", "--input", f"@{tmp_path / 'x.npy'}", "--input", "10xf32=1")
        == 0
    )
    assert capsys.readouterr().out.splitlines()[-1] == "10xf32=1 2 3 4 5 6 7 8 9 10"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--function", "bar"], "it has foo, sum, mixed"),
        (["--function", "sum", "--input", "10xf32=0,1,2", "--input", "10xf32"], "3 values for 10 elements"),
        (["--function", "sum", "--input", "10xf99=0", "--input", "10xf32"], "is no array"),
        (["--function", "sum", "--input", "9xf32", "--input", "10xf32"], "is 9, and the program takes 10"),
        (["--function", "sum", "--input", "10xi32", "--input", "10xf32"], "is of int32"),
        (["--device", "cuda", *["--input", "1x1xf32"] * 3], "does not run on 'cuda'"),
    ],
)  # fmt: skip
def test_what_does_not_fit(
    argv: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(folder, *argv) != 0
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("dialect", OTHERS)
def test_other_dialects(dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text(OTHERS[dialect])
    x = np.array([-1, 0, 0.5, 2], np.float32)
    np.testing.assert_allclose(fewbit.compile(str(path), "iree-cpu")(x), np.tanh(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("func.func @f() { return }", True),
        ("// mico.relu is not here\nfunc.func @f() { return }", True),
        ("%y = mico.relu(%x)", False),
        ("graph.subgraph @net() {", False),
        ("func.func @f(%x: tensor<2x!mico.int<4>>)", False),
        ("func.func @mico.f() { return }", True),
    ],
)
def test_programs_of_ours_are_not_raw(text: str, raw: bool, tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    assert is_raw_mlir(path) == raw
