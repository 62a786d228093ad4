"""The tables of `fewbit bench`: times beside other tools, sizes, and the share of each layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from fewbit.bench.report import Report, Times

WIDTH = 120
"""Columns of the tables where there is no terminal to ask."""


def print_report(report: Report) -> None:
    """Print tables on the console."""
    from rich.console import Console

    console = Console()
    console = Console(width=None if console.is_terminal else WIDTH)
    target = " ".join([report.target, *(f"--{name}" for name in report.options)])
    what = f"{report.model}, {report.recipe or 'float32'}, {target}"
    console.print(f"{what}, {', '.join(report.inputs)}", highlight=False)
    for times in report.times:
        console.print(_times_table(times))
        for tool, why in times.absent.items():
            console.print(f"{tool}: {why}", markup=False, highlight=False)
    sizes = report.sizes
    console.print(
        f"weights {sizes.weights:,} B, library {sizes.library:,} B; "
        f"as float32 {sizes.float32:,} B ({sizes.weights / max(sizes.float32, 1):.3f})",
        highlight=False,
    )
    if report.layers:
        console.print(_layer_table(report))


def _times_table(times: Times) -> Table:
    from rich.table import Table

    clock = "processor time, 1 thread" if times.threads == 1 else f"{times.threads} threads"
    table = Table(title=clock, title_justify="left")
    for name in ("tool", "numbers"):
        table.add_column(name, overflow="fold")
    for name in ("minimum", "median", "per second", "ratio", "SQNR dB", "files"):
        table.add_column(name, justify="right")
    for row in times.tools:
        table.add_row(
            row.tool,
            row.variant,
            _time(row.least),
            _time(row.median),
            f"{row.throughput:,.0f}" if row.throughput >= 10 else f"{row.throughput:.2f}",
            f"{row.ratio:.2f}",
            "" if row.sqnr_db is None else f"{row.sqnr_db:.1f}",
            "" if not row.bytes else f"{row.bytes:,}",
        )
    return table


def _layer_table(report: Report) -> Table:
    from rich.table import Table

    count = report.layer_threads
    title = f"layers, {count} thread{'s' if count != 1 else ''}; time at best"
    table = Table(title=title, title_justify="left")
    for name in ("layer", "kernel"):
        table.add_column(name, overflow="fold")
    for name in ("time", "share", "MACs", "bytes", "of bound"):
        table.add_column(name, justify="right")
    for row in _layer_rows(report):
        table.add_row(*row)
    return table


def _layer_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for layer in report.layers:
        kernels = [k for k in layer.kernels if k != "loop"] or ["loop"]
        yield (
            layer.name,
            ", ".join(kernels),
            _time(layer.seconds),
            f"{layer.share:.1%}",
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.bytes:,}" if layer.bytes else "",
            f"{layer.achieved:.2f}",
        )


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3f} {unit}"
    return f"{seconds / 1e-6:.2f} us"
