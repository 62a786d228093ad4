"""Upstream dialects, completed with the ops that xDSL's own definitions lack."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect

EXTENDED: dict[str, Callable[[], Dialect]] = {}
