"""Results as a tuning spec: IREE reads it, and configures a matmul as it says."""

from __future__ import annotations

from pathlib import Path

from fewbit.cost.hardware.host import host
from fewbit.targets.iree.source import Source
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.database import Database, Key, Result
from fewbit.tune.iree.build import build
from fewbit.tune.iree.spec import Matmul, tuning_spec
from fewbit.tune.iree.tuning import key_of
from fewbit.tune.schedule import Schedule

PRODUCT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<24x40xf32>, %w: tensor<64x40xf32>) -> tensor<24x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<24x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<24x64xf32>) -> tensor<24x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<24x40xf32>, tensor<64x40xf32>) outs(%start : tensor<24x64xf32>) {
  ^bb0(%in: f32, %weight: f32, %sum: f32):
    %p = arith.mulf %in, %weight : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<24x64xf32>
  return %y : tensor<24x64xf32>
}
"""
FLAGS = [f for f in compile_flags("iree-cpu") if "tiling" not in f and "ukernels" not in f]
TILES = Schedule((24, 32, 0), (6, 16, 8))


def test_iree_obeys_a_spec(tmp_path: Path) -> None:
    (dispatch,) = build(Source(PRODUCT), FLAGS, "net").dispatches
    assert dispatch.reason is None
    assert dispatch.default != TILES
    database = Database(tmp_path / "tuning.db")
    key = key_of(dispatch, host())
    database.put(Result(key, TILES, 0.5, 0.01, 1e-6, 1, "analytic"))
    window = Key(key.target, "8p3r i:f32[d0+d1] i:f32[d1] o:f32[d0] {}", key.hardware, key.versions)
    database.put(Result(window, Schedule((8, 0), (8, 1)), 0.5, 0.0, 1e-6, 1, "analytic"))
    text, count, left = tuning_spec(database)
    assert (count, left) == (1, 1)
    path = tmp_path / "spec.mlir"
    path.write_text(text)
    flags = [*FLAGS, f"--iree-codegen-tuning-spec-path={path}"]
    (configured,) = build(Source(PRODUCT), flags, "net").dispatches
    assert configured.default == TILES


def test_what_cannot_be_said() -> None:
    assert Matmul.of("4px5px6r i:f32[d0,d2] i:f32[d2,d1] o:f32[d0,d1] {arith.addf,arith.mulf}")
    assert (
        Matmul.of("4px5px6r i:i8[d0,d2] i:i8[d2,d1] o:i32[d0,d1] {arith.addi,arith.muli}") is None
    )
    assert Matmul.of("4px3r i:f32[d0+d1] i:f32[d1] o:f32[d0] {arith.addf,arith.mulf}") is None


def test_nothing_to_say(tmp_path: Path) -> None:
    text, count, left = tuning_spec(Database(tmp_path / "none.db"))
    assert (count, left) == (0, 0)
    assert "module" in text
