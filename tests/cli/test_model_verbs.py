"""`fewbit compile`, `quantize` and `inspect` on models named in each of the ways."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.program.program import Program

FACTORY = """
import torch
from torch import nn

def plain():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))

def with_inputs():
    return plain(), (torch.randn(2, 8),), {"input": {0: torch.export.Dim("n")}}

def broken():
    return 1, 2, 3, 4, 5

def tokens():
    return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))

def one_tensor():
    return plain(), torch.randn(2, 8)

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, *, scale, twice=False):
        return self.fc(x) * scale * (2 if twice else 1)

def named():
    return Named(), (torch.randn(2, 8),), {"scale": torch.ones(2, 4)}

def flagged():
    return Named(), [torch.randn(2, 8)], {"scale": torch.ones(4), "twice": True}

def all_four():
    n = torch.export.Dim("n")
    shapes = {"x": {0: n}, "scale": {0: n}}
    return Named(), (torch.randn(2, 8),), {"scale": torch.ones(2, 4)}, shapes

class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(x) if x.sum() > 0 else x

def branching():
    return Branching(), (torch.ones(2, 8),)

class LooksUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.rows = nn.Linear(8, 8), nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return self.a(x) + self.rows[x[:, 0].long()]

def looks_up():
    return LooksUp(), (torch.ones(2, 8),)
"""


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "net.py"
    file.write_text(FACTORY)
    return file


def fewbit(*argv: object) -> int:
    return guarded(run, [str(word) for word in argv])


def outcome(*argv: object) -> tuple[int, str]:
    """The exit status and what is shown on stderr, of a process."""
    command = [sys.executable, "-c", "from fewbit.cli.main import main; main()", *map(str, argv)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_graph_stage_is_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert fewbit("compile", "zoo:lenet", "--stop-after", "graph") == 0
    text = capsys.readouterr().out
    verify(parse_module(text))
    assert "graph.subgraph @model(" in text
    assert "tensor<?x1x28x28xf32>" in text


def test_stages_are_dumped(factory: Path, tmp_path: Path) -> None:
    out, ir = tmp_path / "net.mlir", tmp_path / "ir"
    options = ["--stop-after", "linalg", "-r", "w4a8", "-o", out, "--dump-ir", ir]
    assert fewbit("compile", f"{factory}:with_inputs", *options) == 0
    assert sorted(p.name for p in ir.iterdir()) == [
        "00-graph.mlir",
        "01-mico.mlir",
        "02-kernel.mlir",
        "03-linalg.mlir",
    ]
    assert "!mico.int<4>" in (ir / "01-mico.mlir").read_text()
    lowered = out.read_text()
    verify(parse_module(lowered))
    assert "mico.bitlinear" not in lowered
    assert "kernel.matmul" not in lowered
    assert "func.call @kernel." in lowered


def test_quantized_program_is_saved(factory: Path, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    name = f"{factory}:plain"
    assert fewbit("quantize", name, "-r", "w4a8", "-o", folder, "--input-shape", "1x8") == 0
    program = Program.load(folder)
    program.verify()
    assert program.store["0.weight"].dtype == np.uint8
    assert program.run(np.ones((1, 8), np.float32))[0].shape == (1, 4)


def test_exported_archive_and_text(factory: Path, tmp_path: Path) -> None:
    import torch

    model = torch.nn.Linear(8, 4)
    archive = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(model, (torch.randn(2, 8),)), archive)
    assert fewbit("compile", archive, "--stop-after", "graph", "-o", tmp_path / "net.mlir") == 0
    assert fewbit("compile", tmp_path / "net.mlir", "--stop-after", "graph") == 0


def test_what_is_no_archive_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "net.pt2"
    archive.write_bytes(b"not an archive")
    assert fewbit("compile", archive, "--stop-after", "graph") == 1
    assert "not an archive of torch.export" in capsys.readouterr().err


@pytest.mark.slow
def test_archives_are_read_without_noise(tmp_path: Path) -> None:
    """In a process of its own: what torch logs goes around pytest."""
    import torch

    archive = tmp_path / "net.pt2"
    exported = torch.export.export(torch.nn.Linear(8, 4), (torch.randn(2, 8),))
    torch.export.save(exported, archive)
    assert outcome("-q", "compile", archive, "--stop-after", "graph") == (0, "")
    archive.write_bytes(b"not an archive")
    status, shown = outcome("-q", "compile", archive, "--stop-after", "graph")
    assert status == 1
    assert shown.startswith(f"error: {archive}: not an archive of torch.export")
    assert len(shown.splitlines()) == 2


@pytest.mark.slow
def test_a_branch_on_data_is_one_error(factory: Path) -> None:
    status, shown = outcome("-q", "inspect", f"{factory}:branching")
    assert status == 3
    assert len(shown.splitlines()) == 2
    assert "torch.cond" in shown


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("one_tensor", "%input: tensor<2x8xf32>"),
        ("named", "%x: tensor<2x8xf32>, %scale: tensor<2x4xf32>"),
        ("flagged", "%x: tensor<2x8xf32>, %scale: tensor<4xf32>"),
        ("all_four", "%x: tensor<?x8xf32>, %scale: tensor<?x4xf32>"),
    ],
)
def test_what_a_factory_may_return(
    name: str, signature: str, factory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit("compile", f"{factory}:{name}", "--stop-after", "graph") == 0
    assert f"@main({signature})" in capsys.readouterr().out


def test_inputs_of_integers(factory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--stop-after", "graph", "--input-shape", "1x5:i64"]
    assert fewbit("compile", f"{factory}:tokens", *options) == 0
    assert "@main(%input: tensor<1x5xi64>)" in capsys.readouterr().out


def test_inspect_as_json(factory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fewbit("inspect", f"{factory}:with_inputs", "-r", "w4a8", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    first = data["layers"][0]
    assert (first["name"], first["weight_bits"], first["act_bits"]) == ("0", 4, 8)
    assert first["parameters"] == 8 * 6 + 6
    assert first["bytes"] == 6 * 4 + 6 * 4 + 6 * 4
    assert first["macs"] == first["output_shape"][0] * 48
    assert first["bops"] == first["macs"] * 32
    assert 5 < first["sqnr_db"] < 60


@pytest.mark.parametrize("options", [[], ["--keep-batch-norm"]])
def test_noise_is_that_of_quantization_where_batch_norms_are_folded(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit("inspect", "zoo:resnet8", "-r", "w8a8", "--json", *options) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert len(layers) == 10
    assert all(25 < layer["sqnr_db"] < 45 for layer in layers)


def test_inspect_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert fewbit("inspect", "zoo:lenet", "-r", "w8a8") == 0
    shown = capsys.readouterr().out
    assert "conv1" in shown
    assert "5 layers" in shown
    assert "44,426" in shown


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["compile", "zoo:lenett", "--stop-after", "graph"], 2, "lenet"),
        (["compile", "zoo:lenet", "-t", "tpu"], 2, "no target"),
        (["inspect", "missing.pt2"], 2, "there is no model"),
        (["inspect", "model.onnx"], 2, "there is no model"),
        (["inspect", "model.keras"], 2, "there is no model"),
        (["inspect", "FILE:plain", "--constant", "x=1"], 2, "ONNX"),
        (["inspect", "FILE:nothing"], 2, "there is no 'nothing'"),
        (["inspect", "FILE:broken"], 2, "gave 5 values"),
        (["inspect", "FILE:plain"], 2, "input_shapes"),
        (["inspect", "FILE:plain", "--input-shape", "1by8"], 2, "is not a shape"),
        (["inspect", "FILE:tokens", "--input-shape", "1x8:i65"], 2, "element type"),
        (["inspect", "FILE:with_inputs", "-r", "w9a8"], 2, "9"),
        (["inspect", "FILE:with_inputs", "-r", "wat"], 2, "wat"),
    ],
)
def test_mistakes_get_an_answer(
    argv: list[str], status: int, message: str, factory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit(*(word.replace("FILE", str(factory)) for word in argv)) == status
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


FLOAT = "1 of 2 weights, 89 % of weight bytes"


def test_weights_that_stay_float_are_said(
    factory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = f"{factory}:looks_up"
    warning = f"warning: {FLOAT}, stays float: rows\n"
    assert fewbit("quantize", model, "-r", "w4a8", "-o", tmp_path / "q") == 0
    assert capsys.readouterr().err.count(warning) == 1
    assert fewbit("inspect", model, "-r", "w4a8") == 0
    shown = capsys.readouterr()
    assert shown.err.count(warning) == 1
    assert shown.out.endswith(f"{FLOAT}, stays float: rows\n")
    assert fewbit("inspect", model, "-r", "w4a8", "--json", "-q") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["float_weights"]["names"] == ["rows"]
    assert shown.err == ""


@pytest.mark.parametrize("verb", ["quantize", "compile", "inspect"])
def test_strictness_is_an_exit_status(
    factory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    output = [] if verb == "inspect" else ["-o", tmp_path / "out"]
    model = (verb, f"{factory}:looks_up", "--strict", *output)
    assert fewbit(*model, "-r", "w4a8") == 4
    said = capsys.readouterr().err
    assert f"float weights error: {FLOAT}, stays float: rows\n" in said
    assert "hint: name them in the recipe" in said
    assert not (tmp_path / "out").exists()
    assert fewbit(*model, "-r", "w4a8,rows=fp") == 0


@pytest.mark.parametrize("verb", ["compile", "inspect"])
def test_strictness_needs_a_recipe(factory: Path, tmp_path: Path, verb: str) -> None:
    assert fewbit(verb, f"{factory}:looks_up", "--strict") == 2


def test_an_artifact_says_which_weights_stay_float(
    factory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit("compile", f"{factory}:looks_up", "-r", "w4a8,rows=fp", "-o", tmp_path / "a") == 0
    shown = capsys.readouterr()
    assert FLOAT in shown.out
    assert "warning" not in shown.err
    assert fewbit("inspect", tmp_path / "a") == 0
    said = f"{FLOAT}, stays float: as the recipe asks: rows"
    assert said in capsys.readouterr().out
