from __future__ import annotations

import re
from pathlib import Path

import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.toolchain.iree_devices import compile_flags

TEXT = """
func.func @main(%x: tensor<4x7xi8>, %w: tensor<3x7xi8>, %y: tensor<4x5xf32>) -> (tensor<4x3xi32>, tensor<4x5xf32>) {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<4x3xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<4x3xi32>) -> tensor<4x3xi32>
  %z = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<4x7xi8>, tensor<3x7xi8>) outs(%start : tensor<4x3xi32>) -> tensor<4x3xi32>
  %e = math.exp %y : tensor<4x5xf32>
  return %z, %e : tensor<4x3xi32>, tensor<4x5xf32>
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "net.mlir"
    path.write_text(TEXT)
    return path


def compiled(module: Path, target: str) -> bytes:
    art = fewbit.compile(str(module), target)
    return (art.folder / "net.vmfb").read_bytes()


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90"])
def test_cuda(arch: str, module: Path) -> None:
    assert f".target {arch}".encode() in compiled(module, f"iree-cuda:{arch}")


@pytest.mark.parametrize("arch", ["gfx1100", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_rocm(arch: str, module: Path) -> None:
    assert arch.encode() in compiled(module, f"iree-rocm:{arch}")


def test_metal_is_compiled_to_source(module: Path) -> None:
    assert b"metal_stdlib" in compiled(module, "iree-metal")


@pytest.mark.parametrize(
    "target", ["iree-vulkan", pytest.param("iree-vulkan:rdna3", marks=pytest.mark.slow)]
)
def test_vulkan(target: str, module: Path) -> None:
    assert b"GLSL.std.450" in compiled(module, target)


@pytest.mark.parametrize(
    ("detail", "machine"),
    [
        pytest.param("x86-64-v3", 62, marks=pytest.mark.slow),
        ("aarch64", 183),
        pytest.param("riscv64", 243, marks=pytest.mark.slow),
        ("riscv64-unknown-linux-gnu", 243),
        pytest.param("aarch64-linux-gnu", 183, marks=pytest.mark.slow),
    ],
)
def test_other_processors(detail: str, machine: int, module: Path) -> None:
    code = compiled(module, f"iree-cpu:{detail}")
    at = code.index(b"\x7fELF")
    assert int.from_bytes(code[at + 18 : at + 20], "little") == machine


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("iree-cpu:vax", "aarch64, .* or a triple"),
        ("iree-cuda:ampere", "sm_86"),
        ("iree-rocm:navi", "gfx942"),
        ("iree-metal:m1", "iree-metal only"),
        ("iree-tpu", "targets: cpu, .*iree-cpu"),
    ],
)
def test_names_without_meaning(target: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        fewbit.compile("zoo:mlp", target)
    assert re.search(words, str(caught.value))


def test_64_bits_stay_where_devices_have_them() -> None:
    assert "--iree-input-demote-f64-to-f32=false" in compile_flags("iree-cpu")
    assert "--iree-input-demote-f64-to-f32=false" not in compile_flags("iree-vulkan")


def test_other_names_of_processors_are_understood() -> None:
    assert compile_flags("iree-cpu:arm64") == compile_flags("iree-cpu:aarch64")
    assert compile_flags("iree-cpu:amd64") == compile_flags("iree-cpu:x86-64-v2")
