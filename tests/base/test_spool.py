"""Arrays in a temporary file."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from fewbit.base import spool
from fewbit.base.spool import LARGE, Spool, is_mapped


def test_large_arrays_are_in_a_file_and_small_ones_are_not():
    kept, small = Spool(), np.arange(4)
    large = np.arange(LARGE, dtype=np.int32).reshape(2, -1)
    first, second = kept.keep(large), kept.keep(large[::-1])
    assert is_mapped(first)
    assert is_mapped(second)
    np.testing.assert_array_equal(first, large)
    np.testing.assert_array_equal(second, large[::-1])
    assert not first.flags.writeable
    assert kept.keep(small) is small
    assert kept.keep(first) is first


def test_empty_is_written_to():
    array = Spool().empty((3, LARGE), np.int8)
    array[1] = 7
    assert is_mapped(array)
    assert array[1, 5] == 7


def test_arrays_stay_in_memory_where_the_disk_is_full(monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(spool, "posix_fallocate", full)
    large = np.ones(LARGE)
    assert Spool().keep(large) is large
    assert not is_mapped(Spool().empty((LARGE,), np.int8))
