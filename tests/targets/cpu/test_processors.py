"""One program on every processor that the target knows: the same integers on all of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UnsupportedError, UsageError
from fewbit.models import lenet_text
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.toolchain.elf import section
from fewbit.toolchain.isa import Isa, names
from fewbit.toolchain.llvm import host_features
from tests.targets.cpu import static_net
from tests.targets.cpu.emulate import EMULATORS, emulated
from tests.targets.cpu.programs import Array, inputs, layers

RUNNABLE = [name for name in names() if Isa.of(name).runs_on(host_features())]


def outputs(artifact: Artifact, folder: Path, program: Program, *arrays: Array, threads: int = 1) -> list[Array]:  # fmt: skip
    """Run the artifact here or under an emulator; skip the test where neither can be done."""
    processor = artifact.manifest.target.partition(":")[2]
    if processor in RUNNABLE:
        return list(artifact.run(*arrays, threads=threads))
    if processor not in EMULATORS:
        pytest.skip(f"neither this machine nor an emulator runs {processor}")
    return emulated(artifact, folder, *arrays, like=program.run(*arrays), threads=threads)


@cache
def lenet() -> Program:
    return Program.parse(lenet_text())


CASES = [*((name, 8) for name in names()), *((name, None) for name in EMULATORS)]


@pytest.mark.parametrize(("processor", "bits"), CASES)
def test_same_numbers(tmp_path: Path, processor: str, bits: int | None) -> None:
    program = layers(dynamic=True, bits=bits)
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "net", name="net")
    for rows, threads in ((1, 1), (40, 1), (40, 3)):
        given = inputs(rows)
        result = outputs(artifact, tmp_path, program, *given, threads=threads)
        for got, wanted in zip(result, program.run(*given), strict=True):
            assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    ("alias", "name"), [("arm64", "aarch64"), ("amd64", "x86-64-v2"), ("x86_64", "x86-64-v2")]
)
def test_other_names_give_the_same_library(tmp_path: Path, alias: str, name: str) -> None:
    program = layers()
    given = fewbit.compile(program, f"cpu:{alias}", tmp_path / "alias", name="net")
    wanted = fewbit.compile(program, f"cpu:{name}", tmp_path / "name", name="net")
    assert given.manifest == wanted.manifest


def test_an_unknown_processor_lists_the_known() -> None:
    with pytest.raises(UsageError, match="no target 'cpu:arm63'") as raised:
        fewbit.compile(layers(), "cpu:arm63")
    hint = str(raised.value.hint)
    assert hint.startswith("did you mean cpu:aarch64?")
    assert all(f"cpu:{name}" in hint for name in names())


@pytest.mark.parametrize("processor", names())
def test_threads_end_when_a_library_is_unloaded(tmp_path: Path, processor: str) -> None:
    artifact = fewbit.compile(layers(), f"cpu:{processor}", tmp_path / "net", name="net")
    data = artifact.folder.joinpath("libnet.so").read_bytes()
    assert section(data, ".fini_array").size == 8


@pytest.mark.parametrize("processor", names())
def test_lenet(tmp_path: Path, processor: str) -> None:
    program = lenet()
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "lenet", name="lenet")
    (result,) = outputs(artifact, tmp_path, program, x)
    assert np.array_equal(result, program.run(x)[0])


@pytest.mark.parametrize("processor", names())
def test_static_scales(tmp_path: Path, processor: str) -> None:
    program, x = static_net.program("w8a8-static", batch=1), static_net.inputs(1)
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "net", name="net")
    (result,) = outputs(artifact, tmp_path, program, x)
    assert np.array_equal(result, program.run(x)[0])


def test_library_for_another_processor_is_not_loaded(tmp_path: Path) -> None:
    processor = next(name for name in names() if name not in RUNNABLE)
    artifact = fewbit.compile(layers(), f"cpu:{processor}", tmp_path / "net")
    with pytest.raises(UnsupportedError, match="does not execute") as raised:
        artifact(*inputs())
    assert f"compiled for cpu:{processor}" in str(raised.value.hint)


def test_unknown_processor_is_named(tmp_path: Path) -> None:
    with pytest.raises(fewbit.errors.UsageError, match="cpu:z80") as raised:
        fewbit.compile(layers(), "cpu:z80", tmp_path / "net")
    assert "cpu:aarch64" in str(raised.value.hint)
