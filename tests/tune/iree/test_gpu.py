"""IREE's dispatches for Hopper with tiles of ours: compiled, prepared, kept, and put in again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.errors import Error, UsageError
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.targets.iree.source import Source
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.cuda.search import prepare, record
from fewbit.tune.database import Database
from fewbit.tune.iree.apply import apply, is_known
from fewbit.tune.iree.build import Build, build
from fewbit.tune.iree.gpu_dispatch import GpuDispatch
from fewbit.tune.iree.gpu_tuning import Kernels, spaces_of
from fewbit.tune.prepared import MEASURED, read_prepared
from fewbit.tune.schedule import Schedule
from tests.tune.iree.networks import CONVOLUTION

TARGET = "iree-cuda:sm_90"
FLAGS = compile_flags(TARGET)
TILES = Schedule((4, 8, 32, 0, 0, 0), (1, 4, 4, 1, 1, 8), how=(("promote", 1),))
IREES_OWN = Schedule((1, 1, 32, 0, 0, 0), (1, 1, 1, 1, 3, 4), how=(("promote", 0),))
HALVES = """
func.func @main(%a: tensor<256x128xf16>, %b: tensor<128x250xf16>) -> tensor<256x250xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x250xf32>
  %c = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x250xf32>) -> tensor<256x250xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x128xf16>, tensor<128x250xf16>)
    outs(%c : tensor<256x250xf32>) -> tensor<256x250xf32>
  return %r : tensor<256x250xf32>
}
"""


@pytest.fixture(scope="module")
def built() -> Build:
    return build(Source(CONVOLUTION), FLAGS, "net")


@pytest.fixture(scope="module")
def dispatch(built: Build) -> GpuDispatch:
    every = [GpuDispatch(d.text, d.name) for d in built.dispatches]
    (result,) = [d for d in every if d.reason is None]
    return result


def test_other_tiles_are_other_instructions(built: Build, dispatch: GpuDispatch) -> None:
    kernels = Kernels(dispatch, HOPPER)
    assert b"mul" in (built.code_of(dispatch.name) or b"")
    base, made = kernels.default_candidate(), kernels.candidate(TILES)
    (launch,), (usual,) = made.plan.launches, base.plan.launches
    assert launch.block == (4 * 2 * 8, 1, 1)
    assert launch.grid == (2, 1, 1)
    assert launch.shared > 0
    assert (launch.grid, launch.block) != (usual.grid, usual.block)
    assert [r.written for r in kernels.regions].count(True) == 1
    with pytest.raises(Error, match="same instructions"):
        kernels.candidate(IREES_OWN)


def test_a_round_of_a_search(built: Build, dispatch: GpuDispatch, tmp_path: Path) -> None:
    """Prepared here, measured elsewhere, and then used by compiles for that GPU."""
    database, folder = Database(tmp_path / "tuning.db"), tmp_path / "prepared"
    spaces, left = spaces_of(built, HOPPER)
    assert [space.name for space in spaces] == [dispatch.name]
    prepare(folder, spaces, database, target=TARGET, arch="sm_90", title="net", left=left, first=1)
    (op,) = read_prepared(folder).ops
    assert op.candidates[0].schedule is None
    assert len(op.candidates) + len(op.failed) == 2
    with pytest.raises(UsageError, match="not measured yet"):
        record(folder, database)
    best = op.candidates[1].schedule
    assert best is not None
    values = {
        "key": list(op.key.row), "seconds": 1e-5, "noise": 0.01, "again": 0.5,
        "best": best.as_json(),
        "trials": [{"schedule": best.as_json(), "ratio": 0.4, "reason": ""}],
    }  # fmt: skip
    (folder / MEASURED).write_text(json.dumps({"op": 0, "done": values}))
    row = next(row for row in record(folder, database) if row.result is not None)
    assert row.result is not None
    assert (row.result.schedule, row.result.ratio) == (best, 0.5)
    assert is_known(database, target=TARGET)
    assert not is_known(database, target="iree-cuda:sm_80")
    applied = apply(Source(CONVOLUTION), FLAGS, "net", database, target=TARGET)
    assert applied.schedules == {dispatch.name: best}
    assert applied.tuned is not None
    assert applied.tuned.code_of(dispatch.name) != applied.default.code_of(dispatch.name)


@pytest.mark.slow
def test_tensor_cores() -> None:
    (configured,) = build(Source(HALVES), FLAGS, "net").dispatches
    dispatch = GpuDispatch(configured.text, configured.name)
    assert dispatch.reason is None
    kernels = Kernels(dispatch, HOPPER)
    ranked = kernels.rank()
    made = kernels.candidate(ranked[0][1])
    assert made.plan.launches[0].grid != kernels.default_candidate().plan.launches[0].grid
    text = dispatch.with_schedule(ranked[0][1])
    assert "padding" in text  # 250 columns are no whole tiles
