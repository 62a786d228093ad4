"""Passes, one per file, by name.

Each value of `PASSES` imports its pass when asked, so listing the passes loads none of them.
`canonicalize`, `cse` and `dce` are xDSL's own and are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass


def _fold_constants() -> type[ModulePass]:
    from fewbit.transforms.fold_constants import FoldConstants

    return FoldConstants


def _inline() -> type[ModulePass]:
    from fewbit.transforms.inline import Inline

    return Inline


def _outline_subgraph() -> type[ModulePass]:
    from fewbit.transforms.outline_subgraph import OutlineSubgraph

    return OutlineSubgraph


def _place_devices() -> type[ModulePass]:
    from fewbit.transforms.place_devices import PlaceDevices

    return PlaceDevices


def _symbol_dce() -> type[ModulePass]:
    from fewbit.transforms.symbol_dce import SymbolDce

    return SymbolDce


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "fold-constants": _fold_constants,
    "inline": _inline,
    "outline-subgraph": _outline_subgraph,
    "place-devices": _place_devices,
    "symbol-dce": _symbol_dce,
}
