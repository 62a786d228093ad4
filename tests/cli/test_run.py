"""`fewbit run`: artifacts and programs on inputs from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run

TEXT = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<2xi64>) -> (tensor<?x4xf32>, tensor<2xi64>) {
  %z = mico.relu(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z, %y : tensor<?x4xf32>, tensor<2xi64>
}
"""
X = np.array([[-1, 2, -3, 4]], np.float32)
Y = np.array([5, 6])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact, a saved program, a text, and inputs."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "net.mlir").write_text(TEXT)
    program = fewbit.Program(fewbit.parse(TEXT))
    program.save(folder / "saved")
    fewbit.compile(program, "cpu", folder / "art", name="net")
    fewbit.compile(program, "cpu:riscv64", folder / "foreign", name="net")
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    np.save(folder / "wide.npy", np.ones((1, 5), np.float32))
    np.save(folder / "double.npy", X.astype(np.float64))
    np.save(folder / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(folder / "both.npz", x=X, y=Y)
    np.savez(folder / "half.npz", x=X)
    return folder


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def ran(*argv: object) -> int:
    return guarded(run, ["run", *map(str, argv)])


FILES = ["--input", "x.npy", "--input", "y.npy"]


@pytest.mark.parametrize("program", ["art", "saved", "net.mlir"])
def test_outputs_are_summed_up(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(program, *FILES) == 0
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert first == "output0: 1x4 float32, 0 to 4, mean 1.5: [0, 2, 0, 4]"
    assert second == "output1: 2 int64, 5 to 6, mean 5.5: [5, 6]"
    assert ("interpreted" in err) == (program != "art")


@pytest.mark.parametrize("options", [FILES, ["-i", "both.npz", "--threads", "2"]])
def test_outputs_are_written(options: list[str], tmp_path: Path) -> None:
    assert ran("art", *options, "--output", tmp_path / "out.npz") == 0
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["output0"], np.maximum(X, 0))
        np.testing.assert_array_equal(out["output1"], Y)


def test_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("art", "--random", "--repeat", "3") == 0
    assert "3 runs: minimum " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["nix", "--random"], 2, "there is no program 'nix'"),
        (["art"], 2, "takes 2 inputs, 0 given"),
        (["art"], 2, "x (?x4 float32), y (2 int64)"),
        (["art", *FILES, "--random"], 2, "exclude each other"),
        (["art", "-i", "nix.npy", "-i", "y.npy"], 2, "there is no file 'nix.npy'"),
        (["art", "-i", "wide.npy", "-i", "y.npy"], 1, "'x' is 1x5, and the program takes ?x4"),
        (["saved", "-i", "wide.npy", "-i", "y.npy"], 1, "'x' is 1x5, and the program takes ?x4"),
        (["art", "-i", "double.npy", "-i", "y.npy"], 1, "'x' is of float64"),
        (["art", "-i", "objects.npy", "-i", "y.npy"], 1, "not an array of numpy"),
        (["art", "-i", "net.mlir", "-i", "y.npy"], 1, "not an array of numpy"),
        (["art", "-i", "half.npz"], 1, "no array 'y'"),
        (["art", *FILES, "-o", "out.txt"], 2, "neither .npy nor .npz"),
        (["art", *FILES, "-o", "out.npy"], 2, "2 outputs, and .npy holds one"),
        (["art", *FILES, "--threads", "1000"], 2, "1000 threads"),
        (["saved", *FILES, "--threads", "2"], 2, "interpreted"),
        ([".", *FILES], 1, "program.mlir"),
    ],
)
def test_mistakes(
    argv: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(*argv) == status
    assert message in capsys.readouterr().err


def test_foreign_code_needs_qemu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert ran("foreign", *FILES) == 1
    assert "code for riscv64" in capsys.readouterr().err


def test_variant_is_for_libraries_that_have_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("art", *FILES, "--variant", "x86-64-v2") == 2
    assert "has no variants" in capsys.readouterr().err
    assert ran("saved", *FILES, "--variant", "x86-64-v2") == 2
    assert "--variant is for compiled programs" in capsys.readouterr().err


def test_variant_by_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = fewbit.compile(
        fewbit.Program(fewbit.parse(TEXT)), "cpu", home / "several", name="net", cpu_variants="auto"
    )
    plainest = artifact.manifest.variants[-1].name
    assert ran("several", *FILES, "--variant", plainest) == 0
    assert "[0, 2, 0, 4]" in capsys.readouterr().out
    assert ran("several", *FILES, "--variant", "z80") == 2
    assert plainest in capsys.readouterr().err
