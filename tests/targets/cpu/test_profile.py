"""Libraries that count where their time goes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which
from time import perf_counter

import numpy as np
import pytest
from torch import nn, randn

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.codegen.runtime import runtime_ir
from fewbit.errors import UsageError
from fewbit.passes.loops.count_cycles import LOOP, Row, profile_ir
from fewbit.runtime import Artifact
from tests.targets.cpu.emulate import emulated

RUNS = 40
RELU = """
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = mico.relu(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %z : tensor<2x4xf32>
}
"""
X = np.random.default_rng(0).standard_normal((1, 3, 32, 32), np.float32)


def network() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 16, 3),
        nn.Softmax(1),
        nn.Flatten(),
        nn.Linear(14400, 8),
    ]
    return nn.Sequential(*layers).eval()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("profile") / "net"
    example = (randn(1, 3, 32, 32),)
    return fewbit.compile(
        network(), "cpu", folder, name="net", example_inputs=example, profile=True
    )


def test_every_call_is_counted(artifact: Artifact) -> None:
    artifact.profile(reset=True)
    for _ in range(RUNS):
        artifact(X)
    assert {row.calls for row in artifact.profile()} == {RUNS}


def test_rows_say_what_they_work_on(artifact: Artifact) -> None:
    rows = {row.kernel: row for row in artifact.profile()}
    conv, linear = rows["fewbit_conv2d_f32"], rows["fewbit_matmul_f32"]
    assert (conv.name, linear.name) == ("0", "3")
    assert (conv.macs, linear.macs) == (30 * 30 * 16 * 27, 14400 * 8)
    assert conv.bytes - conv.weight_bytes == 4 * (32 * 32 * 3 + 30 * 30 * 16)
    assert linear.weight_bytes >= 4 * 14400 * 8
    assert rows[LOOP].macs == rows[LOOP].weight_bytes == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_times_add_up_to_the_whole(artifact: Artifact, threads: int) -> None:
    call = artifact.runner.prepare(X, threads=threads)
    call()
    artifact.profile(reset=True)
    start = perf_counter()
    for _ in range(RUNS):
        call()
    whole = perf_counter() - start
    rows = artifact.profile()
    counted = sum(row.seconds for row in rows)
    # Starting threads is no part of any call.
    assert (0.5 if threads == 1 else 0.01) * whole < counted < 1.02 * whole
    assert all(0 < row.least * RUNS <= row.seconds * 1.001 for row in rows)


def test_reset_begins_anew(artifact: Artifact) -> None:
    artifact(X)
    artifact.profile(reset=True)
    assert all((r.calls, r.cycles, r.least) == (0, 0, 0.0) for r in artifact.profile())


def test_outputs_are_the_same_bits(artifact: Artifact) -> None:
    example = (randn(1, 3, 32, 32),)
    model = network()
    plain = fewbit.compile(model, example_inputs=example)
    counting = fewbit.compile(model, example_inputs=example, profile=True)
    assert np.array_equal(plain(X), counting(X))
    with pytest.raises(UsageError, match="does not count") as caught:
        plain.profile()
    assert "profile=True" in str(caught.value.hint)


def test_sizes_of_the_run_are_no_amounts() -> None:
    program = fewbit.Program(fewbit.parse(RELU.replace("2x4", "?x4")))
    artifact = fewbit.compile(program, name="net", profile=True)
    artifact(np.ones((3, 4), np.float32))
    (row,) = artifact.profile()
    assert (row.kernel, row.calls, row.bytes) == (LOOP, 1, 0)


def test_the_command_line_makes_one(tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text(RELU)
    folder = tmp_path / "net"
    command = ["compile", str(tmp_path / "net.mlir"), "--profile", "-o", str(folder)]
    assert guarded(run, command) == 0
    loaded = fewbit.load(folder)
    loaded(np.ones((2, 4), np.float32))
    assert [row.calls for row in loaded.profile()] == [1]


def test_without_a_profile_nothing_is_offered(tmp_path: Path) -> None:
    fewbit.compile(fewbit.Program(fewbit.parse(RELU)), "cpu", tmp_path / "net", name="net")
    assert "profile" not in (tmp_path / "net" / "net.h").read_text()


@pytest.mark.skipif(which("cc") is None, reason="needs a C compiler")
def test_a_c_program_reads_the_table(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(C_CLIENT)
    folder = artifact.folder
    command = [
        "cc",
        "-Wall",
        "-Werror",
        f"-I{folder}",
        "main.c",
        f"{folder}/libnet.a",
        "-lm",
        "-pthread",
    ]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    kernels = [row.kernel for row in artifact.profile()]
    assert re.findall(r"^(\S+) 2$", done.stdout, re.MULTILINE) == kernels


C_CLIENT = """
#include <stdio.h>
#include "net.h"
static float x[3 * 32 * 32], y[8];
static _Alignas(64) char arena[NET_ARENA_BYTES];
int main(void) {
  net_inputs inputs = {x};
  net_outputs outputs = {y};
  uint64_t start = net_ticks();
  for (int i = 0; i < 2; i++) if (net_run(&inputs, &outputs, arena, 1) != NET_OK) return 1;
  uint64_t whole = net_ticks() - start, sum = 0;
  size_t rows;
  net_profile_row *row = net_profile(&rows);
  for (size_t i = 0; i < rows; i++) {
    printf("%s %d\\n", row[i].kernel, (int)row[i].calls);
    if (row[i].least > row[i].ticks) return 2;
    sum += row[i].ticks;
  }
  return sum <= whole ? 0 : 3;
}
"""


@pytest.mark.parametrize(
    ("family", "counter"),
    [
        ("x86_64", "readcyclecounter"),
        ("aarch64", "readsteadycounter"),
        ("riscv64", "readsteadycounter"),
    ],
)
def test_counters_are_those_that_programs_may_read(family: str, counter: str) -> None:
    counters = re.findall(r"@llvm\.(read\w+)", runtime_ir("profile", family))
    assert set(counters) == {counter}


def test_the_table_begins_with_nothing_counted() -> None:
    text = profile_ir("net", [Row("a", "b", 1, 2, 3)])
    assert "i64 1, i64 2, i64 3, i64 0, i64 0, i64 -1 }]" in text
    assert "@profile.rows = constant i64 1" in text


@pytest.mark.parametrize("processor", ["aarch64", "riscv64"])
def test_other_processors_run_what_counts(processor: str, tmp_path: Path) -> None:
    program = fewbit.Program(fewbit.parse(RELU))
    artifact = fewbit.compile(
        program, f"cpu:{processor}", tmp_path / "net", name="net", profile=True
    )
    x = np.array([[-1, 2, -3, 4], [5, -6, 7, -8]], np.float32)
    (y,) = emulated(artifact, tmp_path, x, like=[x])
    assert np.array_equal(y, np.maximum(x, 0))
