"""Precision search: a budget in, the best recipe out. The package is itself the function.

`fewbit.search(net, data=..., budget={"size": 0.25})` calls `search` of `fewbit.search.api`: the
verb and the package have one name, so the module can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType

from fewbit.search.api import search


class _Verb(ModuleType):
    __call__ = staticmethod(search)


sys.modules[__name__].__class__ = _Verb
