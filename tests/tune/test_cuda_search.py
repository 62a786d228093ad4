"""What a search on a GPU tries next, what it keeps, and that results are compared."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import UsageError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import AMPERE, HOPPER
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.tune.cuda.layers import Layer, known_settings, layer_key
from fewbit.tune.cuda.measure import differs, numbers
from fewbit.tune.cuda.search import choose
from fewbit.tune.database import Database, Result, Trial
from fewbit.tune.prepared import Region, read_prepared
from fewbit.tune.schedule import Schedule

PROBLEM = Convolution.parse("n1,14x14,256,256,k3")


def schedule(group: int, thread: int, depth: int, promote: int = 1) -> Schedule:
    return Schedule((group, 64, 0), (thread, 4, depth), how=(("promote", promote),))


RANKED = [
    (1.0 + i / 100, schedule(group, thread, depth, promote))
    for i, (promote, thread, group, depth) in enumerate(
        (p, t, g, d) for p in (1, 0) for t in (4, 8) for g in (32, 64) for d in (8, 16)
    )
]


def test_first_what_differs_then_what_is_like_the_best() -> None:
    first = choose(RANKED, {}, 4)
    assert len({(s.vector[0], s.how) for s in first}) == 4
    best = schedule(64, 8, 8)
    known = {best: Trial(best, 0.5), RANKED[0][1]: Trial(RANKED[0][1], 0.9)}
    later = choose(RANKED, known, 4)
    assert best not in later
    assert schedule(64, 8, 16) in later
    assert schedule(32, 8, 8) in later
    assert RANKED[0][1] not in later


def test_settings_of_layers_are_kept_and_preferred(tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    layer = Layer("conv", PROBLEM, "mma", {}, HOPPER)
    chosen = next(s for _, s in layer.rank() if dict(s.how)["kernel"] == "patch")
    database.put(Result(layer_key(PROBLEM, HOPPER), chosen, 0.5, 0.0, 1e-5, 3, "measured"))
    assert known_settings(database, AMPERE) == {}
    found = known_settings(database, HOPPER)
    usual = table.find(HOPPER, "conv2d", "n1,14x14,256,256,k3|f16|nhwc")
    with table.preferring(found):
        preferred = table.find(HOPPER, "conv2d", "n1,14x14,256,256,k3|f16|nhwc")
        assert table.find(HOPPER, "conv2d", "n32,56x56,64,64,k3|f16|nhwc") is not None
    assert usual is not None
    assert preferred is not None
    assert (usual.family, preferred.family) == ("wgmma", "patch")
    assert table.find(HOPPER, "conv2d", "n1,14x14,256,256,k3|f16|nhwc") == usual


def test_numbers_are_filled_and_compared() -> None:
    region = Region("w", 0, (4, 3, 3, 1), "f16", -1.0)
    plain = numbers(region, 1)
    turned = numbers(Region("w", 0, (4, 3, 3, 1), "f16", -1.0, order="depthwise"), 1)
    assert plain.dtype == np.float16
    assert turned.shape == (3, 3, 4)
    assert np.allclose(turned[1, 2], plain[:, 1, 2, 0], atol=1e-3)
    assert numbers(Region("x", 0, (5,), "i8", -1.0), 0).dtype == np.int8
    a = np.ones(8, np.float32)
    b = a.copy()
    b[3] = 1.01
    as_bytes = a.view(np.uint8), b.view(np.uint8)
    assert differs(*as_bytes, "f32", 0.1) is None
    assert "differ by 0.01" in (differs(*as_bytes, "f32", 1e-4) or "")
    b[3] = np.nan
    assert differs(*as_bytes, "f32", 0.1)
    assert differs(*as_bytes, "i32", None) == "its integers differ"


def test_folders_without_candidates(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no prepared candidates"):
        read_prepared(tmp_path)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="there is a GPU's driver here")
def test_without_a_gpu_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["tune", "zoo:mlp", "-t", "cuda"]) != 0
    said = capsys.readouterr().err
    assert "there is none: this machine has no CUDA driver" in said
    assert "'fewbit tune prepare MODEL -o DIR'" in said


@pytest.mark.slow
def test_candidates_are_prepared_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, database = tmp_path / "prepared", str(tmp_path / "tuning.db")
    given = ["--prepare", str(folder), "--tuning-db", database, "--time", "20s"]
    assert guarded(run, ["tune", "zoo:lenet", "-t", "iree-cuda:sm_90", *given]) == 0
    assert "candidates of" in capsys.readouterr().out
    prepared = read_prepared(folder)
    assert prepared.arch == "sm_90"
    assert prepared.ops
    assert all(why for _, why in prepared.left.values())
    assert guarded(run, ["tune", "zoo:lenet", "-t", "iree-cpu", *given]) == 2
