"""The search for garbage is rare inside of a call, and as before after it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fewbit.base.garbage import THRESHOLDS, collect_rarely


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def ordinary_search() -> Iterator[None]:
    """The search of a fresh process, whatever the process of the tests has."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
    yield
    gc.set_threshold(*before)
    if frozen:
        gc.freeze()


def is_rare() -> bool:
    return gc.get_threshold() == THRESHOLDS and gc.get_freeze_count() > 0


def test_rare_inside_and_as_before_after_it() -> None:
    with suppress(KeyError), collect_rarely():
        assert is_rare()
        raise KeyError
    assert not is_rare()
    assert gc.get_threshold() == (700, 10, 10)


def test_calls_in_calls_end_with_the_outer() -> None:
    with collect_rarely():
        with collect_rarely():
            pass
        assert is_rare()


def test_new_garbage_is_found() -> None:
    with collect_rarely():
        dead = weakref.ref(Cycle())
        _: list[list[int]] = [[] for _ in range(2 * THRESHOLDS[0])]
        assert dead() is None


def test_a_search_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collect_rarely():
            assert not gc.isenabled()
            assert not is_rare()
    finally:
        gc.enable()
