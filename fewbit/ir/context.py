"""The context that knows every dialect: upstream's, fewbit's and plug-ins'.

Dialects come from the entry point group `xdsl.universe` and are loaded when first met in a
text, so making a context costs microseconds; entry points are looked up once for a search path,
because reading what is installed takes longer than most passes. Where xDSL's definition of an
upstream dialect lacks ops that the front ends produce, fewbit registers its extended version in
its place.
"""

from __future__ import annotations

import sys
from functools import cache

from xdsl.context import Context
from xdsl.universe import Universe


def multiverse() -> Universe:
    """Return all dialects and passes that are installed."""
    return _multiverse(tuple(sys.path))


@cache
def _multiverse(path: tuple[str, ...]) -> Universe:
    return Universe.get_multiverse()


def make_context(*, allow_unregistered: bool = False) -> Context:
    ctx = Context(allow_unregistered=allow_unregistered)
    register_dialects(ctx)
    return ctx


def register_dialects(ctx: Context) -> None:
    """Let a context know every dialect."""
    from fewbit.dialects.upstream import EXTENDED

    for name, factory in (multiverse().all_dialects | EXTENDED).items():
        ctx.register_dialect(name, factory)
