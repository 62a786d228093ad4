"""The dispatches that a module of IREE consists of, as a table."""

from __future__ import annotations

from collections import Counter

from fewbit.base.console import short
from fewbit.program.artifact import Folder
from fewbit.targets.iree.dispatches import Dispatch, dispatches_of
from fewbit.targets.view import Seen


def list_dispatches(folder: Folder) -> Seen:
    """Return the dispatches of a run, then those when the module is loaded."""
    from rich.table import Table

    dispatches = dispatches_of(folder)
    table = Table(title=f"{folder.path}, dispatches", title_justify="left")
    for name in ("dispatch", "layer", "ops"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "bytes", "MACs"):
        table.add_column(name, justify="right")
    for at_load in (False, True):
        rows = [each for each in dispatches if each.at_load == at_load]
        for each in rows:
            table.add_row(
                each.name,
                each.layer or "",
                _ops(each),
                "at load" if at_load else str(each.calls),
                f"{each.bytes:,}",
                short(each.macs) if each.macs else "",
            )
        if rows:
            table.add_section()
            bytes, macs = (sum(getattr(r, n) * r.calls for r in rows) for n in ("bytes", "macs"))
            when = "at load" if at_load else "a run"
            table.add_row(f"{len(rows)} {when}", "", "", "", f"{bytes:,}", short(macs))
            table.add_section()
    return Seen({"dispatches": [each.model_dump() for each in dispatches]}, table)


def _ops(each: Dispatch) -> str:
    counted = Counter(each.ops)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counted.items())
