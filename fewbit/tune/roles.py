"""Which loops of a matmul or convolution are its rows, its columns and its sum.

Columns are the loop along which results lie in a row: they become vectors. Rows are other parallel
loops, of which the innermost is tiled with the columns. Windows of a convolution bind a row to a
reduction: compilers take such a reduction step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.cost.loops import LoopNest


@dataclass(frozen=True)
class Roles:
    """The loops of a nest by what they do in a matmul."""

    columns: int
    rows: tuple[int, ...]
    """Outermost first; none for a GEMV."""
    sums: tuple[int, ...]
    windows: frozenset[int]
    """Reductions that share an index with a row."""
    inner: int | None
    """The reduction that is unrolled: the innermost that is no window, else the innermost."""
    transposed: bool
    """Whether the matrix of weights lies in rows along the sum, not along the columns."""
    batches: frozenset[int] = frozenset()
    """Rows that have weights of their own."""
    scattered: bool = False
    """Whether a convolution's image is channels-first (NCHW): compilers make scalars of it."""


def roles_of(nest: LoopNest) -> Roles | None:
    """Return the roles of a nest that multiplies and adds; None for any other."""
    if not nest.multiplies or not nest.of_kind("reduction"):
        return None
    output = nest.outputs[0]
    parallel = [i for i in nest.of_kind("parallel") if nest.loops[i].extent > 1]
    columns = next((i for i in parallel if output.stride(i) == 1), None)
    if columns is None:
        return None
    sums = nest.of_kind("reduction")
    windows = frozenset(
        loop
        for access in nest.inputs
        for index in access.indices or ()
        if len(index.loops) > 1
        for loop in index.loops
        if loop in sums
    )
    inner = next((i for i in reversed(sums) if i not in windows), sums[-1] if sums else None)
    weights = [a for a in nest.inputs if columns in a.loops]
    transposed = bool(weights) and all(a.stride(columns) != 1 for a in weights)
    rows = tuple(i for i in parallel if i != columns)
    batches = frozenset(i for i in rows if weights and all(i in a.loops for a in weights))
    images = [a for a in nest.inputs if any(len(index.loops) > 1 for index in a.indices or ())]
    apart = inner is not None and inner not in windows and any(a.stride(inner) != 1 for a in images)
    return Roles(columns, rows, sums, windows, inner, transposed, batches, apart)
