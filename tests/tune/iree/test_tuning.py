"""IREE's dispatches with tiles of ours: put in, checked, timed, kept, and put in again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbit.cost.hardware.host import host
from fewbit.cost.loops import list_nests
from fewbit.cost.loops.dumps import generic_text, parse_generic
from fewbit.targets.agreement import largest_difference
from fewbit.targets.iree.source import Source
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.database import Database, Result
from fewbit.tune.iree.apply import apply, find_schedules, is_known
from fewbit.tune.iree.bindings import Span
from fewbit.tune.iree.build import Build, build
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.measured import Measured, differs
from fewbit.tune.iree.tuning import key_of, tune_dispatches
from fewbit.tune.schedule import Schedule
from tests.tune.iree.networks import CONVOLUTION

FLAGS = compile_flags("iree-cpu")
WIDE = Schedule((8, 8, 32, 0, 0, 0), (1, 4, 32, 1, 1, 2))


@pytest.fixture(scope="module")
def built() -> Build:
    return build(Source(CONVOLUTION), FLAGS, "net")


@pytest.fixture(scope="module")
def dispatch(built: Build) -> Configured:
    (result,) = [d for d in built.dispatches if d.reason is None]
    return result


def test_what_iree_chose_is_read(dispatch: Configured) -> None:
    root = dispatch.root
    assert root is not None
    assert root.nest is not None
    assert root.nest.shape_class == "convolution"
    assert root.nest.macs == 8 * 8 * 32 * 3 * 3 * 8
    assert dispatch.default.vector[0] == 1
    assert "elementwise{arith.maximumf}" in dispatch.signature


def test_fused_ops_follow(dispatch: Configured) -> None:
    changed = Configured(dispatch.with_schedule(WIDE))
    assert changed.default == WIDE
    others = [t.config for t in changed.tiled if t is not changed.root]
    assert len(others) == 2  # what fills the sums, and the maximum
    assert {c["vector_common_parallel"] for c in others} == {(1, 1, 4, 32)}
    plain = [n.signature for n in list_nests(dispatch.module).nests]
    again = list_nests(parse_generic(generic_text(changed.text))).nests
    assert [n.signature for n in again] == plain


def test_trials_are_checked(dispatch: Configured, tmp_path: Path) -> None:
    measured = Measured(dispatch, tmp_path)
    assert measured.can(dispatch.root.nest) is None  # pyright: ignore
    huge = Schedule((8, 8, 32, 0, 0, 0), (8, 8, 32, 3, 3, 8))
    good, same, failed = measured.try_all([WIDE, dispatch.default, huge])
    assert good.ratio is not None
    assert good.ratio > 0
    assert same.ratio is None
    assert "same instructions" in same.reason
    # All sums at once do not fit into registers, where IREE compiles that at all.
    assert failed.reason or (failed.ratio is not None and failed.ratio > 2)


def test_numbers_that_differ() -> None:
    span = Span(0, 0, (4,), "f32")
    a = np.ones(4, np.float32)
    b = a.copy()
    b[2] += 1e-6
    assert differs(a.view(np.uint8), b.view(np.uint8), span) is None
    b[2] += 1e-2
    assert "differ" in (differs(a.view(np.uint8), b.view(np.uint8), span) or "")
    whole = Span(0, 0, (4,), "i8")
    assert differs(a.view(np.uint8)[:4], b.view(np.uint8)[:4], whole) is None
    b[0] = 3
    assert differs(a.view(np.uint8)[:4], b.view(np.uint8)[:4], whole) == "its integers differ"
    assert largest_difference([a], [a]) == 0.0
    assert largest_difference([a], [np.full(4, np.nan)]) == float("inf")


def test_a_batch_of_one_gets_its_tiles(dispatch: Configured, tmp_path: Path) -> None:
    """Attributes on the op itself are dropped there without a word."""
    database = Database(tmp_path / "tuning.db")
    assert not is_known(database)
    assert apply(Source(CONVOLUTION), FLAGS, "net", database).tuned is None
    key = key_of(dispatch, host())
    database.put(Result(key, WIDE, 0.5, 0.01, 1e-6, 1, "analytic"))
    assert is_known(database)
    found = apply(Source(CONVOLUTION), FLAGS, "net", database)
    assert found.tuned is not None
    assert found.schedules == {dispatch.name: WIDE}
    assert found.tuned.code_of(dispatch.name) != found.default.code_of(dispatch.name)
    assert found.tuned.made.data != found.default.made.data
    # Fused with something else, it is still known by the op that leads.
    alone = Database(tmp_path / "alone.db")
    alone.put(Result(replace(key, signature=dispatch.nest.signature), WIDE, 0.5, 0.0, 1e-6, 1, ""))
    assert find_schedules(found.default.dispatches, alone) == {dispatch.name: WIDE}


def test_a_search(built: Build, dispatch: Configured, tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    rows = tune_dispatches(built, database, seconds=0.0)
    tuned = [row for row in rows if row.reason is None]
    assert [row.name for row in tuned] == [dispatch.name]
    assert tuned[0].seconds
    assert tuned[0].result is not None
    assert tuned[0].result.reason == "no time was left"
    left = [row for row in rows if row.reason is not None]
    assert all(row.reason for row in left)


@pytest.mark.slow
def test_a_search_with_time(built: Build, dispatch: Configured, tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    rows = tune_dispatches(built, database, seconds=120.0, workers="2")
    (row,) = [row for row in rows if row.reason is None]
    assert row.result is not None
    assert row.result.trials > 5
    assert database.get(key_of(dispatch, host())) == row.result
    again = tune_dispatches(built, database, seconds=120.0)
    assert [r.result.trials for r in again if r.result] == [row.result.trials]
