"""The search for the `cpu` target: choices give the same bits, and compiles use what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.toolchain.isa import Isa
from fewbit.tune.cpu import choices, isa_with, key_of, tune_cpu, tuned_isa
from fewbit.tune.database import Database, Result
from fewbit.tune.schedule import Schedule

NARROW = Schedule((192,), (2, 0))


@pytest.fixture(scope="module")
def program() -> fewbit.Program:
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    net = nn.Sequential(nn.Linear(700, 96), nn.ReLU(), nn.Linear(96, 10))
    return fewbit.quantize(net, "w8a8", example_inputs=(torch.randn(3, 700),))


def test_choices_change_the_processor() -> None:
    isa = isa_with(NARROW)
    assert (isa.tile_vectors, isa.block_depth, isa.bit_products) == (2, 192, 0)
    assert isa.panel_width == 2 * isa.lanes
    usual = Isa.host()
    assert (usual.chosen_vectors, usual.chosen_depth, usual.counts_bits) == (0, 0, True)
    results = list(choices())
    assert len(set(results)) == len(results)
    assert Schedule((0,), (0, 1)) not in results


def test_a_compile_uses_what_was_found(program: fewbit.Program, tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    assert tuned_isa(program, database) is None
    database.put(Result(key_of(program), NARROW, 0.9, 0.01, 1e-5, 1, "measured"))
    assert tuned_isa(program, database) == isa_with(NARROW)
    path = str(database.path)
    tuned = fewbit.compile(program, "cpu", tmp_path / "tuned", tuning_db=path)
    plain = fewbit.compile(program, "cpu", tmp_path / "plain", tuning_db="none")
    library = "libtuned.so", "libplain.so"
    sizes = [
        (art.folder / name).read_bytes() for art, name in zip((tuned, plain), library, strict=True)
    ]
    assert sizes[0] != sizes[1]
    x = np.random.default_rng(0).standard_normal((3, 700)).astype(np.float32)
    assert np.array_equal(tuned(x), plain(x))


@pytest.mark.slow
def test_a_search(program: fewbit.Program, tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    report = tune_cpu(program, database, trials=2)
    assert report.before > 0
    assert report.rows[0].result is not None
    assert len(database.trials(key_of(program))) >= 2
    assert report.kept == (database.get(key_of(program)).schedule is not None)  # pyright: ignore
