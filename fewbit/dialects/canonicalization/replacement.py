"""Replacing one op by another that must be valid, and that stands where the old one stood.

Shapes may be known at one op and `?` at the next, so two valid ops may combine into one that
contradicts itself: such a pair is left as it is. xDSL's driver keeps names but not locations.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException


def replace_where_valid(op: Operation, simpler: Operation, rewriter: PatternRewriter) -> None:
    simpler.location = op.location
    try:
        simpler.verify()
    except VerifyException:
        simpler.erase()
        return
    rewriter.replace(op, simpler)
