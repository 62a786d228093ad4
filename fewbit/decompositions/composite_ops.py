"""Ops that PyTorch takes apart by itself, told from those that a table takes apart.

torch goes through all its ops to tell them, which takes longer than to import a small model. It is
done once for each table and each set of registered ops: packages may register more at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, cast

import torch
from torch.export import exported_program

KEY = "CompositeImplicitAutograd"
_dispatch: Any = cast(Any, torch)._C

Functions = Mapping[Any, Callable[..., Any]]


def split_table(table: Functions) -> tuple[Functions, Functions]:
    """The composite ops that a table changes, or keeps whole, and what it says of other ops."""
    registered = len(_dispatch._dispatch_get_registrations_for_dispatch_key(KEY))
    return _split(frozenset(table.items()), registered)


@cache
def _split(items: frozenset[tuple[Any, Any]], registered: int) -> tuple[Functions, Functions]:
    split = cast(Any, exported_program)._split_decomp_table_to_cia_and_python_decomp
    composite, others = split(dict(items))
    # The rest is taken apart as torch does by itself; to tell it so takes long.
    return {op: f for op, f in composite.items() if not _is_default(op, f)}, others


def _is_default(op: Any, function: Any) -> bool:
    """Return whether a function takes an op apart as its own kernel does."""
    own = op.py_kernels.get(getattr(_dispatch.DispatchKey, KEY))
    return function is own or isinstance(function, partial)
