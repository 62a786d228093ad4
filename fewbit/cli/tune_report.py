"""What `fewbit tune` says of a search: lines while it runs, then a table or an object of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewbit.base.console import wide_console

if TYPE_CHECKING:
    from fewbit.tune.report import Report, Row


def tell(row: Row) -> None:
    """Say what was found for an op."""
    from fewbit.base.progress import say

    result = row.result
    if result is not None:
        gain = f"{1 / result.ratio:.2f}x, {result.schedule}" if result.schedule else result.reason
        say(f"{row.name}: {gain} ({result.trials} trials)")


def plain_report(report: Report) -> dict[str, object]:
    return {
        "target": report.target,
        "before_seconds": report.before,
        "after_seconds": report.after,
        "kept": report.kept,
        "note": report.note,
        "ops": [
            {
                "name": row.name,
                "calls": row.calls,
                "macs": row.macs,
                "seconds": row.seconds,
                "ratio": None if row.result is None else row.result.ratio,
                "noise": None if row.result is None else row.result.noise,
                "trials": None if row.result is None else row.result.trials,
                "tiles": None
                if row.result is None or row.result.schedule is None
                else row.result.schedule.as_json(),
                "reason": row.reason or (row.result.reason if row.result else ""),
            }
            for row in report.rows
        ],
    }


def print_report(report: Report, title: str) -> None:
    """Print a table of ops before and after, and the model."""
    from rich.table import Table

    from fewbit.tune.tuner import find_tuner

    how = find_tuner(report.target).timed
    words = [title, report.target, *([how] if how else [])]
    table = Table(title=", ".join(words), title_justify="left")
    table.add_column("op", overflow="fold")
    for name in ("calls", "before", "after", "gain", "noise"):
        table.add_column(name, justify="right")
    table.add_column("tiles, or why not", overflow="fold")
    left = [row for row in report.rows if row.reason is not None]
    for row in report.rows:
        if row.reason is not None or row.result is None:
            continue
        result, before = row.result, row.seconds or row.result.seconds
        table.add_row(
            row.name,
            str(row.calls),
            _time(before),
            _time(before * result.ratio),
            f"{1 / result.ratio:.2f}x",
            f"{result.noise:.1%}",
            str(result.schedule) if result.schedule else result.reason,
        )
    for row in left:
        table.add_row(row.name, str(row.calls), "", "", "", "", row.reason or "")
    table.add_section()
    gain = report.before / report.after if report.after else 1.0
    table.add_row(
        "the model", "", _time(report.before), _time(report.after), f"{gain:.2f}x", "", report.note
    )
    wide_console().print(table)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
