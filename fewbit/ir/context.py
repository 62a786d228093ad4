"""The context that knows every dialect: upstream's, fewbit's and plug-ins'.

Dialects come from the entry point group `xdsl.universe` and are loaded when first met in a
text, so making a context costs milliseconds. Where xDSL's definition of an upstream dialect
lacks ops that the front ends produce, fewbit registers its extended version in its place.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.universe import Universe


def make_context(*, allow_unregistered: bool = False) -> Context:
    from fewbit.dialects.upstream import EXTENDED

    ctx = Context(allow_unregistered=allow_unregistered)
    for name, factory in (Universe.get_multiverse().all_dialects | EXTENDED).items():
        ctx.register_dialect(name, factory)
    return ctx
