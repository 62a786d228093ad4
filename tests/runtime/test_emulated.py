"""Code for other kinds of processors, in qemu where it is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cli.main import run
from fewbit.errors import MissingToolError, ShapeError, UnsupportedError
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.runtime import Artifact, emulated
from fewbit.runtime.emulated import EMULATORS, EmulatedLibrary, foreign_isa
from fewbit.toolchain import isa

TEXT = """
func.func @main(%a: tensor<?x2xf32>, %b: tensor<2xf32>) -> (
    tensor<?x2xf32>, tensor<2xf32> {fewbit.name = "twice"}) {
  %0 = mico.add(%a, %b) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %1 = mico.add(%b, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<2xf32>
}
"""
A = np.arange(6, dtype=np.float32).reshape(3, 2)
B = np.array([10, 20], np.float32)
FOREIGN = "riscv64" if isa.host_architecture() == "aarch64" else "aarch64"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("foreign") / "net"
    return fewbit.compile(Program.parse(TEXT), f"cpu:{FOREIGN}", folder)


@pytest.fixture
def library(artifact: Artifact) -> EmulatedLibrary:
    return open_emulated(artifact)


def open_emulated(artifact: Artifact) -> EmulatedLibrary:
    processor = foreign_isa(artifact.manifest)
    assert processor is not None
    try:
        return EmulatedLibrary(open_folder(artifact.folder), processor)
    except MissingToolError as e:
        pytest.skip(e.what)


def test_outputs_are_those_of_the_interpreter(library: EmulatedLibrary) -> None:
    wanted = Program.parse(TEXT).run(A, B)
    for threads in (None, 2):
        outputs = library(A, B, threads=threads)
        for output, each in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(output, each)


def test_no_rows_at_all(library: EmulatedLibrary) -> None:
    assert library(A[:0], B)[0].shape == (0, 2)


def test_inputs_are_checked(library: EmulatedLibrary) -> None:
    with pytest.raises(ShapeError, match="'b' is 3"):
        library(A, np.zeros(3, np.float32))


def test_the_command_line(
    artifact: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_emulated(artifact)
    np.savez(tmp_path / "x.npz", a=A, b=B)
    result = tmp_path / "y.npz"
    run(["run", str(artifact.folder), "-i", str(tmp_path / "x.npz"), "-o", str(result)])
    assert f"qemu-{FOREIGN}" in capsys.readouterr().err
    with np.load(result) as outputs:
        np.testing.assert_array_equal(outputs["output0"], A + B)
        np.testing.assert_array_equal(outputs["twice"], B + B)


def test_without_qemu_it_says_what_to_install(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(program: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", nothing)
    with pytest.raises(MissingToolError, match=f"qemu-{FOREIGN}") as caught:
        run(["run", str(artifact.folder), "--random"])
    assert "apt install qemu-user libc6-" in str(caught.value.hint)


def test_without_the_libc_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def locate(program: str) -> str:
        return f"/usr/bin/{program}"

    monkeypatch.setattr(shutil, "which", locate)
    monkeypatch.setattr(emulated.Emulator, "root", tmp_path)
    with pytest.raises(MissingToolError, match="libc") as caught:
        EMULATORS[FOREIGN].check()
    assert caught.value.hint == f"install it (Debian: apt install {EMULATORS[FOREIGN].libc})"


def test_what_qemu_does_not_execute_is_said(
    library: EmulatedLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    def crash(*args: Any, **named: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], -4, stderr="qemu: uncaught target signal 4\n")

    def pretend_link(*_: object) -> Path:
        return Path("program")

    monkeypatch.setattr(EmulatedLibrary, "_link", pretend_link)
    monkeypatch.setattr(subprocess, "run", crash)
    with pytest.raises(UnsupportedError, match="signal 4"):
        library(A, B)


def test_own_code_is_not_emulated() -> None:
    own = fewbit.compile(Program.parse(TEXT), "cpu", name="net")
    assert foreign_isa(own.manifest) is None


def test_sizes_that_only_a_run_knows(tmp_path: Path) -> None:
    program = Program.parse("""
func.func @main(%x: tensor<2x4xf32>, %count: tensor<i64>) -> (tensor<2x?xf32>, tensor<2x4xf32>) {
  %most = arith.constant 4 : index
  %number = tensor.extract %count[] : tensor<i64>
  %given = arith.index_cast %number : i64 to index
  %cut = arith.minsi %given, %most : index
  %y = tensor.extract_slice %x[0, 0] [2, %cut] [1, 1] : tensor<2x4xf32> to tensor<2x?xf32>
  func.return %y, %x : tensor<2x?xf32>, tensor<2x4xf32>
}""")
    library = open_emulated(fewbit.compile(program, f"cpu:{FOREIGN}", tmp_path / "cut"))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for count in (3, 0, 4):
        cut, whole = library(x, np.array(count))
        np.testing.assert_array_equal(cut, x[:, :count])
        np.testing.assert_array_equal(whole, x)
