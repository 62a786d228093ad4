"""Ops that PyTorch takes apart by itself are told once, and anew when ops are registered."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.export import default_decompositions, exported_program

from fewbit.decompositions.composite_ops import split_table

aten = torch.ops.aten


def double(x: Tensor) -> Tensor:
    return x + x


def test_what_a_table_changes_and_keeps_whole() -> None:
    table: dict[Any, Any] = dict(cast(Any, default_decompositions()).items())
    del table[aten.linear.default]
    table[aten.selu.default] = double
    changed, others = split_table(table)
    assert changed[aten.linear.default] is cast(Any, exported_program)._special_op_to_preserve_cia
    assert changed[aten.selu.default] is double
    assert aten.frac.default in others
    assert not set(changed) & set(others)
    assert aten.matmul.default not in changed, "torch takes it apart as it always does"
    assert split_table(dict(table))[0] is changed, "told once"


def test_ops_that_are_registered_later_are_seen() -> None:
    table: dict[Any, Any] = dict(cast(Any, default_decompositions()).items())
    before, _ = split_table(table)
    library: Any = torch.library.Library("composite_ops_test", "FRAGMENT")
    try:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", double, "CompositeImplicitAutograd")
        after, _ = split_table(table)
    finally:
        library._destroy()
    added = {str(op) for op in set(after) - set(before)}
    assert added == {"composite_ops_test.double.default"}
