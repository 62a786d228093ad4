"""The table of settings, as a file and as what families would try."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import AMPERE, HOPPER
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.conv2d_cutlass import CUTLASS
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.table import Entry


def test_settings_of_convolutions_are_settings_that_families_try() -> None:
    stored = table.load(HOPPER)["conv2d"]
    assert stored
    for key, entries in stored.items():
        shape, dtype, layout = key.split("|")
        problem = Convolution.parse(shape).of(dtype, layout)
        for entry in entries:
            family = LADDER[entry.family]
            assert family.refuse(problem, HOPPER) is None, key
            assert family is CUTLASS or entry.config in family.configs(problem, HOPPER), key


def test_the_fastest_comes_first() -> None:
    for problems in table.load(HOPPER).values():
        for entries in problems.values():
            times = [entry.microseconds for entry in entries]
            assert times == sorted(times)


def test_what_was_not_measured_is_not_known() -> None:
    assert table.load(AMPERE) == {}
    assert table.find(AMPERE, "conv2d", "n1,8x8,8,8,k1|f16|nhwc") is None
    assert table.find(HOPPER, "conv2d", "n1,8x8,8,8,k1|f16|nhwc") is None


def test_a_table_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    table.load.cache_clear()
    slow, fast = Entry("mma", {"bm": 64}, 9.5), Entry("wgmma", {"bn": 8, "mi": 1}, 3.25)
    table.save(HOPPER, {"conv2d": {"a": [slow, fast]}, "attention": {"b": [slow]}})
    assert table.load(HOPPER) == {"conv2d": {"a": [fast, slow]}, "attention": {"b": [slow]}}
    assert table.find(HOPPER, "conv2d", "a") == fast
    assert table.find(HOPPER, "conv2d", "a", "mma") == slow
    assert table.find(HOPPER, "conv2d", "a", "naive") is None
    table.load.cache_clear()
