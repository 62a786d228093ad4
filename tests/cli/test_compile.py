"""`fewbit compile`: stages, dumps, targets, passes of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.passes.native import native_pipeline

TEXT = """
func.func @main(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %y = mico.relu(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}
"""

PASSES = """
from xdsl.rewriter import Rewriter

def drop_relu(module):
    for op in [op for op in module.walk() if op.name == "mico.relu"]:
        Rewriter.replace_op(op, [], list(op.operands))

def fail(module):
    raise RuntimeError("no luck")
"""

FACTORY = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU())
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder of its own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passes.py").write_text(PASSES)
    (tmp_path / "net.py").write_text(FACTORY)
    file = tmp_path / "relu.mlir"
    file.write_text(TEXT)
    return file


def compiled(*argv: object) -> int:
    return guarded(run, ["compile", *map(str, argv)])


def test_stages_are_those_of_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled("zoo:mlp", "--stop-after", "assembly") == 2
    assert f"stages are {', '.join(('graph', *native_pipeline().names))}" in capsys.readouterr().err


def test_artifact_in_the_default_folder(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(program) == 0
    shown = capsys.readouterr().out
    for word in ("librelu.so", "librelu.a", "relu.h", "weights", "arena", "time"):
        assert word in shown
    x = np.array([[-1, 2, -3, 4]], np.float32)
    np.testing.assert_array_equal(fewbit.load("build/relu")(x), np.maximum(x, 0))


def test_name_output_and_processor(program: Path) -> None:
    assert compiled(program, "-t", "cpu:riscv64", "--name", "rectify") == 0
    folder = Path("build/rectify-riscv64")
    assert sorted(p.name for p in folder.iterdir()) == [
        "librectify.a",
        "librectify.so",
        "manifest.json",
        "rectify.h",
    ]
    assert compiled(program, "-o", "elsewhere") == 0
    assert fewbit.load("elsewhere").manifest.target == "cpu"


@pytest.mark.parametrize(
    ("stage", "word"),
    [
        ("graph", "mico.relu"),
        ("mico", "mico.relu"),
        ("kernel", "func.func"),
        ("linalg", "linalg.generic"),
        ("memref", "memref"),
        ("loops", "scf.for"),
        ("llvm", "define"),
        ("object", ".text"),
    ],
)
def test_text_after_each_stage(
    program: Path, stage: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled(program, "--stop-after", stage) == 0
    text = capsys.readouterr().out
    assert word in text
    if stage in ("graph", "mico", "linalg"):
        verify(parse_module(text))
    assert not Path("build").exists()


def test_text_goes_to_a_file(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(program, "--stop-after", "loops", "-o", "out.mlir") == 0
    assert capsys.readouterr().out == ""
    assert "scf.for" in Path("out.mlir").read_text()


def test_dump_has_a_file_for_each_stage(program: Path) -> None:
    assert compiled(program, "--dump-ir", "ir") == 0
    names = sorted(p.name for p in Path("ir").iterdir())
    assert [name[:2] for name in names] == [f"{i:02}" for i in range(8)]
    assert names[0] == "00-graph.mlir"
    assert names[-2:] == ["06-llvm.ll", "07-object.s"]
    Path("ir/mine.txt").touch()
    assert compiled(program, "--stop-after", "mico", "--dump-ir", "ir") == 0
    left = sorted(p.name for p in Path("ir").iterdir())
    assert left == ["00-graph.mlir", "01-mico.mlir", "mine.txt"]


def test_recipe_and_static_sizes(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-r", "w4a8", "--input-shape", "3x16", "--stop-after", "mico"]
    assert compiled("net.py:net", *options) == 0
    text = capsys.readouterr().out
    assert "!mico.int<4>" in text
    assert "tensor<3x16xf32>" in text


def test_sizes_of_a_zoo_model_are_static_where_given(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--stop-after", "graph", "--input-shape", "1x1x28x28"]
    assert compiled("zoo:lenet", *options) == 0
    text = capsys.readouterr().out
    assert "@main(%x: tensor<1x1x28x28xf32>)" in text
    assert "?" not in text


@pytest.mark.parametrize(
    ("inserted", "word"),
    [("mico:passes.py:drop_relu", "max"), ("loops:func.func(affine-scalrep),canonicalize", None)],
)
def test_own_pass(
    program: Path, inserted: str, word: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled(program, "--insert-pass", inserted, "--stop-after", "loops") == 0
    text = capsys.readouterr().out
    assert word is None or word not in text


def test_pass_of_a_plug_in_by_name(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--insert-pass", "mico:canonicalize,cse", "--stop-after", "mico"]
    assert compiled(program, *options) == 0
    assert "mico.relu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["-t", "tpu"], 2, "no target 'tpu'"),
        (["-t", "cpu:z80"], 2, "no target 'cpu:z80'"),
        (["--insert-pass", "canonicalize"], 2, "not a stage with a pass"),
        (["--insert-pass", "llvm:cse"], 2, "no pass can be inserted after 'llvm'"),
        (["--insert-pass", "mico:canonicalise"], 2, "did you mean 'canonicalize'"),
        (["--insert-pass", "loops:canonicalise"], 2, "upstream MLIR has no such pass"),
        (["--insert-pass", "mico:passes.py:nix"], 2, "no function 'nix'"),
        (["--insert-pass", "mico:nix.py:nix"], 2, "no file 'nix.py'"),
        (["--insert-pass", "mico:passes.py:fail"], 1, "in fail: the pass failed"),
        (["--input-shape", "1x4"], 2, "fixed already"),
        (["--stop-after", "nowhere"], 2, "nowhere"),
    ],
)
def test_mistakes(
    program: Path,
    options: list[str],
    status: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compiled(program, *options) == status
    assert message in capsys.readouterr().err


def test_variants_in_one_library(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-t", "cpu:x86-64-v3", "--cpu-variants", "x86-64-v2,x86-64-v3", "--dump-ir", "ir"]
    assert compiled(program, "-o", "out", *options) == 0
    manifest = fewbit.load("out").manifest
    assert [variant.name for variant in manifest.variants] == ["x86-64-v3", "x86-64-v2"]
    assert "weights of x86-64-v2" in capsys.readouterr().out
    files = sorted(path.name for path in Path("ir").iterdir())
    assert files[:3] == ["00-graph.mlir", "01-mico.mlir", "02-kernel.mlir"]
    assert files[3:5] == ["03-linalg-x86-64-v2.mlir", "03-linalg-x86-64-v3.mlir"]
    Path("ir/03-linalg-mine.mlir").touch()
    assert compiled(program, "--stop-after", "mico", "--dump-ir", "ir") == 0
    left = sorted(path.name for path in Path("ir").iterdir())
    assert left == ["00-graph.mlir", "01-mico.mlir", "03-linalg-mine.mlir"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-t", "cpu:riscv64", "--cpu-variants", "x86-64-v2"], "another family"),
        (["--cpu-variants", "z80"], "no processor 'z80'"),
        (["--cpu-variants", "auto", "--stop-after", "llvm"], "one processor"),
    ],
)
def test_variants_that_cannot_be(
    program: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled(program, *options) == 2
    assert said in capsys.readouterr().err
