"""Upstream dialects, completed with the ops that xDSL's own definitions lack.

Each name maps to a factory for a dialect that holds xDSL's ops, the missing ones, and corrected
classes for the few whose definition differs from MLIR's. `make_context` registers these in place
of xDSL's. The ops read and print the same text as MLIR's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect


def _load(module: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        return import_module(f"{__name__}.{module}").DIALECT

    return load


EXTENDED: dict[str, Callable[[], Dialect]] = {
    name: _load(name)
    for name in ("affine", "arith", "linalg", "math", "ml_program", "tensor", "tm_tensor")
}
