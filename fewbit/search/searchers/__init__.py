"""Searchers: what is tried next, given what is known. Each is a file; they share an interface."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.search.problem import Problem
    from fewbit.search.searchers.searcher import Searcher

DEFAULT = "auto"
SEARCHERS = {
    "auto": ("fewbit.search.searchers.auto", "Auto"),
    "random": ("fewbit.search.searchers.random", "Random"),
    "evolution": ("fewbit.search.searchers.evolution", "Evolution"),
    "mico": ("fewbit.search.searchers.surrogate", "ForestBounds"),
    "gp": ("fewbit.search.searchers.surrogate", "GaussianProcess"),
    "tpe": ("fewbit.search.searchers.optuna_samplers", "Tpe"),
    "nsga2": ("fewbit.search.searchers.optuna_samplers", "Nsga2"),
    "gradient-lp": ("fewbit.search.searchers.one_score", "GradientScore"),
    "kl-lp": ("fewbit.search.searchers.one_score", "DivergenceScore"),
}
"""Where each is."""


def check_searcher(name: str) -> str:
    """Return the name of a searcher that there is."""
    if name in SEARCHERS:
        return name
    close = get_close_matches(name, SEARCHERS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"searchers are {', '.join(SEARCHERS)}"
    raise UsageError(f"there is no searcher '{name}'", hint=hint)


def make_searcher(name: str, problem: Problem, seed: int) -> Searcher:
    module, cls = SEARCHERS[check_searcher(name)]
    return getattr(import_module(module), cls)(problem, seed)
