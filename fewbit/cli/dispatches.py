"""`fewbit inspect DIR --dispatches`: what a module of IREE consists of."""

from __future__ import annotations

from collections import Counter

from fewbit.base.json_output import print_json
from fewbit.program.artifact import open_folder
from fewbit.targets.iree.dispatches import Dispatch, dispatches_of


def show_dispatches(artifact: str, as_json: bool) -> None:
    found = dispatches_of(open_folder(artifact))
    if as_json:
        print_json({"dispatches": [each.model_dump() for each in found]})
        return
    from rich.table import Table

    from fewbit.cli.inspect import short, wide_console

    table = Table(title=f"{artifact}, dispatches", title_justify="left")
    for name in ("dispatch", "layer", "ops"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "bytes", "MACs"):
        table.add_column(name, justify="right")
    for at_load in (False, True):
        rows = [each for each in found if each.at_load == at_load]
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
    wide_console().print(table)


def _ops(each: Dispatch) -> str:
    counted = Counter(each.ops)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counted.items())
