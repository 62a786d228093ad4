"""Traits that our dialects share."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait


class Canonicalizes(HasCanonicalizationPatternsTrait):
    """`canonicalize` simplifies the op by its patterns in `transforms/canonicalization`."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        from fewbit.dialects.canonicalization import patterns_of

        return patterns_of(op)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()
