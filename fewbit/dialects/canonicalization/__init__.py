"""Simpler forms of fewbit's own ops, for the pass `canonicalize`.

Every rule is exact: the results keep their bits, so no rule moves a float across a rounding. The
ops name their patterns through `patterns_of`, which loads them when the first is asked for.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern


def patterns_of(op: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the patterns whose root is `op`."""
    return _all_patterns().get(op, ())


@cache
def _all_patterns() -> dict[type[Operation], tuple[RewritePattern, ...]]:
    from fewbit.dialects.canonicalization import graph, mico

    return {**graph.PATTERNS, **mico.PATTERNS}
