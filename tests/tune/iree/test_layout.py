"""Matrices in rows or in tiles of IREE's: the choice of a program is found again, and only its."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewbit.targets.iree.source import Source
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.database import Database
from fewbit.tune.iree.layout import chosen_flags, in_rows, is_faster, keep_layout
from fewbit.tune.timing import Times

FLAGS = compile_flags("iree-cpu")


def test_flags_that_lay_matrices_out() -> None:
    left = in_rows(FLAGS)
    assert 0 < len(left) < len(FLAGS)
    assert not any("data-tiling" in flag for flag in left)


def test_a_program_finds_its_own_choice(tmp_path: Path) -> None:
    database, one, other = Database(tmp_path / "t.db"), Source("one"), Source("other")
    times = Times(1.0, 0.01, (0.5,))
    assert chosen_flags(one, FLAGS, database) == FLAGS
    keep_layout(one, database, times, faster=True)
    keep_layout(other, database, times, faster=False)
    assert chosen_flags(one, FLAGS, database) == in_rows(FLAGS)
    assert chosen_flags(other, FLAGS, database) == FLAGS


@pytest.mark.parametrize(
    ("rows", "tiled", "faster"),
    [
        (0.5, None, True),
        (0.99, None, False),
        (0.5, 0.6, True),
        (0.59, 0.6, False),
        (0.5, 0.4, False),
    ],
)
def test_rows_must_beat_all_else_beyond_the_noise(
    rows: float, tiled: float | None, faster: bool
) -> None:
    own = None if tiled is None else Times(1.0, 0.01, (tiled,))
    assert is_faster(Times(1.0, 0.01, (rows,)), own) is faster
