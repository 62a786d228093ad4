"""Tiles on a GPU keep within its limits, and IREE compiles them for Hopper."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewbit.errors import UsageError
from fewbit.hardware import find_hardware
from fewbit.targets.iree.compiler import iree_compile
from fewbit.targets.iree.devices import compile_flags
from fewbit.tune.gpu_space import GpuTile, gpu_tiles
from tests.analysis.loops.nests import product

H200 = find_hardware("h200")
NEST = product(256, 256, 128)
MATMUL = """
func.func @main(%a: tensor<256x128xf32>, %b: tensor<128x256xf32>) -> tensor<256x256xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %c = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul {{compilation_info = {config}}}
    ins(%a, %b : tensor<256x128xf32>, tensor<128x256xf32>)
    outs(%c : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}}
"""


def test_all_are_within_limits() -> None:
    found = list(gpu_tiles(NEST, H200))
    assert len(found) > 50
    for tile in found:
        assert 32 <= tile.threads <= 1024
        assert tile.shared_bytes(32) <= 232448


def test_limits_are_named() -> None:
    assert "more than 1024" in (GpuTile((256, 256), (2, 2), 8).problem(NEST, H200) or "")
    assert "no whole warps" in (GpuTile((16, 16), (8, 8), 8).problem(NEST, H200) or "")
    assert "shared memory" in (GpuTile((256, 256), (8, 8), 128).problem(NEST, H200) or "")
    with pytest.raises(UsageError, match="no GPU"):
        next(gpu_tiles(NEST, find_hardware("vexii")))


def test_iree_compiles_one(tmp_path: Path) -> None:
    tile = GpuTile((64, 64), (4, 4), 16)
    assert tile.problem(NEST, H200) is None
    sizes: list[bytes] = []
    for name, config in (("a", tile), ("b", GpuTile((32, 64), (2, 4), 32))):
        path = tmp_path / f"{name}.mlir"
        path.write_text(MATMUL.format(config=config.config(NEST)))
        sizes.append(iree_compile(path, compile_flags("iree-cuda:sm_90")).data)
    assert sizes[0] != sizes[1]
    assert b".target sm_90" in sizes[0]
