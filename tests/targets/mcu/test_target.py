# pyright: basic
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fewbit.cli.main import run
from fewbit.errors import MissingToolError, UnsupportedError, UsageError
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.targets.mcu.board import board_of
from fewbit.targets.mcu.core import CORES
from fewbit.targets.mcu.emulate import execute
from fewbit.targets.registry import find_target
from fewbit.toolchain.archive import read_archive
from fewbit.toolchain.elf import symbols
from tests.targets.mcu.emulated import ALL, KINDS, check, compile_for, needs_emulator, quantized

_WEIGHTS = bytes((i * 37 + 11) % 256 for i in range(24)).hex()
SMALL = f"""\
mico.constant @a.scale : tensor<6xf32> = dense<[0.5, 0.25, 1.0, 2.0, 0.125, 0.75]>
mico.constant @a.weight : tensor<6x4x1x1x!mico.int<8>> = dense<"0x{_WEIGHTS}"> scale @a.scale
func.func @main(%x: tensor<1x4x3x3xf32>) -> tensor<1x6x3x3xf32> {{
  %s = arith.constant 0.03125 : f32
  %y = mico.bitconv2d(%x, @a.weight) act_scale(%s) {{act_bits = 8}}
    : (tensor<1x4x3x3xf32>, f32) -> tensor<1x6x3x3xf32>
  %z = mico.relu(%y) : tensor<1x6x3x3xf32> -> tensor<1x6x3x3xf32>
  func.return %z : tensor<1x6x3x3xf32>
}}
"""


@pytest.mark.parametrize("core", ALL)
def test_a_layer_on_every_core(core: str, tmp_path: Path) -> None:
    check(Program.parse(SMALL), core, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("core", ALL)
@pytest.mark.parametrize("recipe", ["w8a8", "w4a8", "w2a2", "w1a1", "w1.58a8", "w3a6"])
def test_mlp_on_every_core(core: str, recipe: str, tmp_path: Path) -> None:
    check(quantized("mlp", recipe), core, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("core", ALL)
@pytest.mark.parametrize("integers", [False, True])
def test_static_scales(core: str, integers: bool, tmp_path: Path) -> None:
    check(quantized("lenet", "w8a8-static", integers), core, tmp_path / "net")


MIXED = '{"default": "w8a8", "layers": {"conv2": "w4a4", "fc1": "w2a8", "fc2": "w1a1"}}'


@pytest.mark.slow
@pytest.mark.parametrize("core", KINDS)
@pytest.mark.parametrize(
    "recipe", ["w8a8", "w4a8", "w2a2", "w1a1", "[[8,6,6,4,4],[8,8,8,8,8]]", MIXED]
)
def test_lenet(core: str, recipe: str, tmp_path: Path) -> None:
    check(quantized("lenet", recipe), core, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("core", KINDS)
@pytest.mark.parametrize("name", ["ds-cnn", "resnet8"])
@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a8", "w2a2", "w1a1"])
def test_networks(core: str, name: str, recipe: str, tmp_path: Path) -> None:
    check(quantized(name, recipe), core, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("core", KINDS)
@pytest.mark.parametrize("name", ["ds-cnn", "resnet8"])
def test_networks_on_integers(core: str, name: str, tmp_path: Path) -> None:
    artifact = check(quantized(name, "w8a8-static", integers=True), core, tmp_path / "net")
    archive = open_folder(artifact.folder).file("libnet.a").read_bytes()
    called = {s.name for m in read_archive(archive) for s in symbols(m.data)}
    assert not {name for name in called if "df" in name or name.startswith("__aeabi_d")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("core", "most"), [("cortex-m4", 6_000_000), ("cortex-m3", 10_000_000), ("rv32imc", 10_900_000)]
)
def test_instructions_of_ds_cnn(core: str, most: int, tmp_path: Path) -> None:
    artifact = check(quantized("ds-cnn", "w8a8-static", integers=True), core, tmp_path / "net")
    assert artifact.runner.plain_stats()["instructions"] < most
    # Average pooling is part of the last convolution: no tensor of 32 bits is in memory.
    assert (artifact.manifest.arena_bytes or 0) < 18_000


def test_header_says_all_that_a_caller_needs(tmp_path: Path) -> None:
    artifact = compile_for(Program.parse(SMALL), "cortex-m3", tmp_path / "net")
    text = (tmp_path / "net" / "net.h").read_text()
    assert "void net_run(const float *x, float *output0, void *arena);" in text
    assert "#define NET_X_SIZE 36" in text
    assert f"#define NET_ARENA_BYTES {artifact.manifest.arena_bytes}" in text
    assert re.search(r"#define NET_STACK_BYTES \d+", text)


def test_library_needs_nothing_of_others(tmp_path: Path) -> None:
    compile_for(Program.parse(SMALL), "cortex-m0plus", tmp_path / "net")
    members = read_archive((tmp_path / "net" / "libnet.a").read_bytes())
    assert [member.name for member in members] == ["net.o", "net_weights.o", "helpers.o"]
    every = [symbol for member in members for symbol in symbols(member.data)]
    defined = {symbol.name for symbol in every if symbol.defined}
    missing = {symbol.name for symbol in every if not symbol.defined} - defined
    assert not missing - {"__aeabi_unwind_cpp_pr0"}
    assert "net_run" in defined


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "net.mlir", tmp_path / "net"
    source.write_text(SMALL)
    run(["compile", str(source), "-t", "mcu:cortex-m4", "-o", str(output)])
    needs_emulator("cortex-m4")
    capsys.readouterr()
    run(["run", str(output), "--random", "--stats"])
    printed = capsys.readouterr().out
    assert "instructions" in printed
    assert "stack_bytes" in printed


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55", "rv32imc", "rv32imafc"])
def test_program_that_boots(core: str, tmp_path: Path) -> None:
    needs_emulator(core)
    program = Program.parse(SMALL)
    compile_for(program, core, tmp_path / "net", bare_metal=True)
    done = execute(board_of(CORES[core]), tmp_path / "net" / "net.elf")
    assert done.agreeing == (54, 54)
    assert 0 < done.instructions < 100_000


def test_batch_becomes_one(tmp_path: Path) -> None:
    program = Program.parse(SMALL.replace("tensor<1x", "tensor<?x"))
    artifact = compile_for(program, "cortex-m4", tmp_path / "net")
    assert artifact.manifest.inputs[0].shape == (1, 4, 3, 3)
    needs_emulator("cortex-m4")
    x = np.random.default_rng(3).standard_normal((1, 4, 3, 3)).astype(np.float32)
    assert np.array_equal(artifact(x), program.run(x)[0])


def test_open_sizes_are_refused(tmp_path: Path) -> None:
    program = Program.parse(SMALL.replace("x3x3xf32", "x?x?xf32"))
    with pytest.raises(UnsupportedError, match="size that is not known") as e:
        compile_for(program, "cortex-m4", tmp_path / "net")
    assert "--input-shape" in (e.value.hint or "")


def test_what_does_not_fit(tmp_path: Path) -> None:
    program = Program.parse(SMALL)
    with pytest.raises(UnsupportedError, match="does not fit: flash and ram") as e:
        compile_for(program, "cortex-m4", tmp_path / "net", flash="256", ram="100")
    assert re.search(
        r"weights +\d+\n +flash +[\d,]+ of 256, [\d,]+ too many", e.value.excerpt or ""
    )
    assert re.search(r"stack +\d+", e.value.excerpt or "")
    assert not (tmp_path / "net").exists()
    compile_for(program, "cortex-m4", tmp_path / "net", flash="64k", ram="16k")


@pytest.mark.parametrize("text", ["much", "12q", ""])
def test_sizes_of_memory_are_checked(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no size of memory"):
        compile_for(Program.parse(SMALL), "cortex-m4", tmp_path / "net", flash=text)


def test_cores_have_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'mcu:cortex-m5'") as e:
        compile_for(Program.parse(SMALL), "cortex-m5", tmp_path / "net")
    assert "did you mean mcu:cortex-m" in (e.value.hint or "")
    assert find_target("mcu").spell("mcu") == "mcu:cortex-m4"


def test_missing_emulator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = compile_for(Program.parse(SMALL), "cortex-m4", tmp_path / "net")
    monkeypatch.setenv("PATH", str(tmp_path))
    obstacle = find_target("mcu").find_obstacle("mcu:cortex-m4")
    assert obstacle is not None
    assert "qemu-system-arm" in obstacle
    with pytest.raises(MissingToolError, match="qemu-system-arm is not installed"):
        artifact(np.zeros((1, 4, 3, 3), np.float32))
