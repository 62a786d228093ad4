"""Weights in a file beside the library: the same results, given once, and no others taken."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.codegen.interface import error_number
from fewbit.codegen.weights_file import HEAD
from fewbit.errors import MissingToolError, StoreError, UsageError
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from fewbit.runtime import Artifact
from fewbit.runtime.emulated import EmulatedLibrary, foreign_isa
from fewbit.targets.cpu import target
from fewbit.toolchain import isa

WEIGHTS = error_number("WEIGHTS")
X = np.random.default_rng(1).integers(-8, 9, (4, 32)).astype(np.float32)
CLIENT = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "net.h"

int main(int count, char **names) {
  static float x[NET_X_ELEMENTS], y[NET_OUTPUT0_ELEMENTS];
  static _Alignas(64) char arena[NET_ARENA_BYTES];
  net_inputs inputs = {.x = x};
  net_outputs outputs = {.output0 = y};
  if (fread(x, sizeof *x, NET_X_ELEMENTS, stdin) != NET_X_ELEMENTS) return 100;
  if (net_run(&inputs, &outputs, arena, 1) != NET_WEIGHTS) return 101;
  int file = open(names[count - 1], O_RDONLY);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0) return 102;
  size_t bytes = (size_t)about.st_size;
  void *content = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (content == MAP_FAILED) return 103;
  int error = net_use_weights(content, bytes);
  if (error == NET_OK) error = net_run(&inputs, &outputs, arena, 1);
  if (error == NET_OK) fwrite(y, sizeof *y, NET_OUTPUT0_ELEMENTS, stdout);
  return error;
}
"""


@pytest.fixture(scope="module")
def program() -> Program:
    store = WeightStore()
    weight = np.random.default_rng(0).integers(-8, 9, (96, 32)).astype(np.float32)
    ref = store.add("w", weight)
    text = f"""
mico.constant @w : tensor<96x32xf32> = #mico.ref<"w", "{ref.sha256}">
func.func @main(%x: tensor<4x32xf32>) -> tensor<4x96xf32> {{
  %w = mico.get_constant @w : tensor<96x32xf32>
  %y = mico.bitlinear(%x, %w) : (tensor<4x32xf32>, tensor<96x32xf32>) -> tensor<4x96xf32>
  func.return %y : tensor<4x96xf32>
}}
"""
    return Program.parse(text, store)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def beside(program: Program, home: Path) -> Artifact:
    return fewbit.compile(program, "cpu", home / "beside", name="net", weights="beside")


def test_results_are_those_of_weights_inside(
    program: Program, home: Path, beside: Artifact
) -> None:
    inside = fewbit.compile(program, "cpu", home / "inside", name="net", weights="inside")
    np.testing.assert_array_equal(beside(X), inside(X))
    assert not (home / "inside" / "net.weights").exists()
    weights = (home / "beside" / "net.weights").stat().st_size
    assert weights == HEAD + beside.manifest.weight_bytes
    for name in ("libnet.so", "libnet.a"):
        sizes = [(home / kind / name).stat().st_size for kind in ("beside", "inside")]
        assert sizes[1] - sizes[0] > weights // 2


def test_libraries_that_are_loaded_twice_keep_their_weights(beside: Artifact) -> None:
    expected = beside(X)
    one, two = fewbit.load(beside.folder), fewbit.load(beside.folder)
    np.testing.assert_array_equal(one(X), expected)
    del one
    gc.collect()
    np.testing.assert_array_equal(two(X), expected)


def test_large_weights_are_beside(
    program: Program, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "LARGE", 64)
    art = fewbit.compile(program, "cpu", home / "large", name="net")
    assert (art.folder / "net.weights").exists()


def test_variants_share_the_file(program: Program, home: Path, beside: Artifact) -> None:
    art = fewbit.compile(
        program, "cpu", home / "variants", name="net", weights="beside", cpu_variants="auto"
    )
    np.testing.assert_array_equal(art(X), beside(X))


def test_other_weights_are_refused(beside: Artifact) -> None:
    library = ctypes.CDLL(str(beside.folder / "libnet.so"))
    use = library.net_use_weights
    use.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    content = (beside.folder / "net.weights").read_bytes()
    memory = np.zeros(len(content) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    memory[start : start + len(content)] = np.frombuffer(content, np.uint8)
    at = memory.ctypes.data + start
    assert use(None, len(content)) == error_number("NULL")
    assert use(at + 1, len(content)) == error_number("ALIGNMENT")
    assert use(at, len(content) - 1) == WEIGHTS
    memory[start + HEAD - 1] ^= 1
    assert use(at, len(content)) == WEIGHTS


def test_a_changed_file_is_refused(beside: Artifact, tmp_path: Path) -> None:
    shutil.copytree(beside.folder, tmp_path / "net")
    content = bytearray((tmp_path / "net" / "net.weights").read_bytes())
    content[-1] ^= 1
    (tmp_path / "net" / "net.weights").write_bytes(content)
    with pytest.raises(StoreError, match="differs from its hash"):
        fewbit.load(tmp_path / "net")(X)


def test_other_places_are_refused(program: Program) -> None:
    with pytest.raises(UsageError, match="'weights'"):
        fewbit.compile(program, "cpu", weights="elsewhere")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("library", ["libnet.so", "libnet.a"])
def test_a_client_in_c_maps_the_file(library: str, beside: Artifact, tmp_path: Path) -> None:
    (tmp_path / "client.c").write_text(CLIENT)
    folder = str(beside.folder)
    subprocess.run(
        ["cc", "-std=gnu11", "-Wall", "-Werror", f"-I{folder}", str(tmp_path / "client.c"),
         str(beside.folder / library), f"-Wl,-rpath,{folder}", "-lm", "-pthread",
         "-o", str(tmp_path / "client")],
        check=True,
    )  # fmt: skip
    done = subprocess.run(
        [str(tmp_path / "client"), str(beside.folder / "net.weights")],
        input=X.tobytes(), capture_output=True, check=True,
    )  # fmt: skip
    expected = beside(X)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, expected.dtype), expected.ravel())


def test_code_for_other_processors_reads_the_file(program: Program, home: Path) -> None:
    name = "riscv64" if isa.host_architecture() == "aarch64" else "aarch64"
    art = fewbit.compile(program, f"cpu:{name}", home / name, name="net", weights="beside")
    processor = foreign_isa(art.manifest)
    assert processor is not None
    try:
        library = EmulatedLibrary(open_folder(art.folder), processor)
    except MissingToolError as e:
        pytest.skip(e.what)
    np.testing.assert_allclose(library(X)[0], program(X), rtol=1e-5, atol=1e-6)
