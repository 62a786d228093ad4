"""How torch.export is told to keep sizes dynamic, and what it fixed nevertheless.

A size may be 0 or 1 at run time, so the tracer must not take these for special (torch calls this
`backed_size_oblivious`). What the model needs of sizes, such as five columns for a window of five,
is no reason to refuse it: where a declared `Dim` is wider than what the model can do, the trace is
repeated with the bounds that torch finds. They become assertions of the program (`sizes`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import symbolic_shapes
from torch.utils._pytree import tree_map

from fewbit.errors import OpenSizesWarning

_SIZE = re.compile(r"(.*)\.size\(\)\[(\d+)\]")
_INPUT = re.compile(r"L\['(\w+)'\]")


@contextmanager
def sizes_of_any_kind() -> Generator[None]:
    """Trace without taking sizes of 0 and 1 for special."""
    from torch.fx.experimental import _config

    with cast(Any, _config).patch(backed_size_oblivious=True):
        yield


@contextmanager
def _unsolved_equations() -> Generator[None]:
    """Let a size have several values that meet an equation, such as `x // 3 == 1`.

    Torch solves equations to tell which sizes are fixed, and sympy gives up on those with divisions
    that round. Such an equation fixes no size; it is an assertion of the program like any other.
    """
    constraints = cast(Any, symbolic_shapes.DimConstraints)
    solve_all = constraints.solve

    def solve(self: Any) -> None:
        while True:
            left = len(self._symbols_with_equalities)
            try:
                return solve_all(self)
            except NotImplementedError:
                # What it gave up on is taken from the set before it is tried.
                if len(self._symbols_with_equalities) == left:
                    raise

    constraints.solve = solve
    try:
        yield
    finally:
        constraints.solve = solve_all


def export_open(export: Callable[[Any], ExportedProgram], dynamic_shapes: Any) -> ExportedProgram:
    """Export with these dynamic shapes, or with the tighter bounds that the model needs."""
    with sizes_of_any_kind(), _unsolved_equations():
        try:
            exported = export(dynamic_shapes)
        except Exception as e:
            if dynamic_shapes is None or not _is_too_wide(e):
                raise
            exported = export(relax(dynamic_shapes))
        _make_static(exported)
        return exported


def _make_static(exported: ExportedProgram) -> None:
    """Give inputs whose sizes have a single value that size; what follows is traced anew."""
    limits = cast("dict[Any, Any]", cast(Any, exported).range_constraints)
    single = {symbol: r.lower for symbol, r in limits.items() if r.lower == r.upper}
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if not single or node.op != "placeholder" or not isinstance(value, torch.Tensor):
            continue
        sizes = [_value(size, single) for size in value.shape]
        if list(map(type, sizes)) != list(map(type, value.shape)):
            with cast(Any, value).fake_mode:
                node.meta["val"] = value.new_empty(sizes)


def _value(size: Any, single: dict[Any, Any]) -> Any:
    expr = None if isinstance(size, int) else size.node.expr
    return int(single[expr]) if expr in single else size


def _is_too_wide(e: Exception) -> bool:
    reasons = ("Constraints violated", "Specializations unexpectedly", "conflicts between")
    return any(reason in str(e) for reason in reasons)


def relax(dynamic_shapes: Any) -> Any:
    """Dynamic shapes whose bounds torch may tighten, down to a single size."""
    return tree_map(_relax_dim, dynamic_shapes, is_leaf=_is_dim)


def _is_dim(value: Any) -> bool:
    return value is None or isinstance(value, (int, Dim, type(Dim.AUTO)))


def _relax_dim(value: Any) -> Any:
    if value is None or isinstance(value, int) or value == Dim.STATIC:
        return value
    if not isinstance(value, Dim) or type(value) is not Dim:
        return Dim.AUTO  # a hint, or what is derived from another
    limits: dict[str, Any] = {"min": value.min, "max": cast(Any, value).max}
    given = {k: v for k, v in limits.items() if isinstance(v, int) and 0 < v < 2**62}
    return cast(Any, Dim.AUTO)(**given) if given else Dim.AUTO


@dataclass(frozen=True)
class FixedSize:
    """A size that was to be dynamic, and that the model holds for a single value of."""

    source: str
    """The input, as Python would write it: `x`, `tensors[0]`."""
    axis: int
    size: int


def fixed_sizes(exported: ExportedProgram) -> list[FixedSize]:
    """Dynamic sizes that the trace has fixed."""
    env = _shape_env(exported)
    if env is None:
        return []
    fixed: list[FixedSize] = []
    for symbol, sources in env.var_to_sources.items():
        value = env.replacements.get(symbol)
        limits = env.var_to_range.get(symbol)
        if value is None and limits is not None and limits.lower == limits.upper:
            value = limits.lower
        match = _SIZE.fullmatch(sources[0].name) if sources else None
        if match is not None and value is not None and value.is_Integer:
            source = _INPUT.sub(r"\1", match[1])
            fixed.append(FixedSize(source, int(match[2]), int(value)))
    return fixed


def warn_of_fixed(exported: ExportedProgram) -> None:
    """Say which sizes the program holds for one value of only."""
    fixed = fixed_sizes(exported)
    if fixed:
        listed = ", ".join(f"size {f.axis} of '{f.source}' is {f.size}" for f in fixed)
        warnings.warn(
            f"the program is for some sizes only, which the model reads as numbers: {listed}",
            OpenSizesWarning,
            stacklevel=4,
        )


def _shape_env(exported: ExportedProgram) -> Any:
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and hasattr(value, "fake_mode"):
            return cast(Any, value).fake_mode.shape_env
    return None
