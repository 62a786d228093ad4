"""Facts are found by their class, and a pass that misses one says what to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fewbit.errors import UsageError
from fewbit.ir.context import make_context
from fewbit.pipeline.context import compile_context, make_compile_context
from fewbit.program.store import WeightStore


@dataclass(frozen=True)
class KernelTable:
    names: tuple[str, ...] = ()


def test_facts_are_found_by_their_class() -> None:
    ctx = make_compile_context(facts=[KernelTable(("a",))])
    assert ctx.get(KernelTable).names == ("a",)
    ctx.put(KernelTable(("b",)))
    assert ctx.get(KernelTable).names == ("b",)


def test_a_missing_fact_is_an_error_in_words() -> None:
    ctx = make_compile_context()
    assert ctx.find(KernelTable) is None
    with pytest.raises(UsageError, match="needs to know the kernel table") as caught:
        ctx.get(KernelTable)
    assert "-t" in (caught.value.hint or "")


def test_the_store_is_a_copy() -> None:
    store = WeightStore()
    ctx = make_compile_context(store)
    ctx.store.add("w", np.zeros(3, np.float32))
    assert "w" not in store


def test_passes_that_need_more_refuse_a_plain_context() -> None:
    with pytest.raises(UsageError, match="needs the weights of a program"):
        compile_context(make_context())
