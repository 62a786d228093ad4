"""How an upstream dialect is completed."""

from __future__ import annotations

from xdsl.ir import Dialect, Operation


def extend(dialect: Dialect, *ops: type[Operation]) -> Dialect:
    """Return `dialect` with `ops` added, each in place of the op of the same name if any."""
    by_name = {op.name: op for op in (*dialect.operations, *ops)}
    interfaces = dialect._interfaces  # pyright: ignore[reportPrivateUsage]
    return Dialect(dialect.name, list(by_name.values()), list(dialect.attributes), interfaces)
