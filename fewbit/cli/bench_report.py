"""The tables of `fewbit bench`: times beside other tools, sizes, and the share of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fewbit.bench.report import Report, Times
    from fewbit.bench.text_report import TextReport, TextTimes

WIDTH = 120
"""Columns of the tables where there is no terminal to ask."""


def _console() -> Console:
    from rich.console import Console

    console = Console()
    return Console(width=None if console.is_terminal else WIDTH)


def print_text_report(report: TextReport) -> None:
    """Print a table for each number of threads."""
    console = _console()
    console.print(f"{report.model}, {report.recipe or 'float32'}, {report.target}", highlight=False)
    for threads, rate in report.reading.items():
        rows = [times for times in report.times if times.threads == threads]
        console.print(_text_table(rows, threads))
        absent = {(tool, why) for times in rows for tool, why in times.absent.items()}
        for tool, why in sorted(absent):
            console.print(f"{tool}: {why}", markup=False, highlight=False)
        console.print(f"memory is read at {rate / 1e9:.1f} GB/s", highlight=False)
    file = "" if report.gguf is None else f"; llama.cpp's file {report.gguf:,} B"
    console.print(
        f"weights {report.weights:,} B, {report.step_weights:,} B read by a step{file}",
        highlight=False,
    )


def _text_table(rows: Sequence[TextTimes], threads: int) -> Table:
    from rich.table import Table

    table = Table(title=_clock(threads), title_justify="left")
    for name in ("work", "tool", "how"):
        table.add_column(name, overflow="fold")
    for name in ("minimum", "median", "tokens/s", "ratio", "SQNR dB", "of bandwidth"):
        table.add_column(name, justify="right")
    for times in rows:
        for row in times.tools:
            is_ours = row.sqnr_db is None
            share = times.of_bandwidth if is_ours else None
            table.add_row(
                times.work if is_ours else "",
                row.tool,
                row.variant,
                _time(row.least),
                _time(row.median),
                _rate(row.tokens_per_second),
                f"{row.ratio:.2f}",
                "" if row.sqnr_db is None else f"{row.sqnr_db:.1f}",
                "" if share is None else f"{share:.2f}",
            )
    return table


def print_report(report: Report) -> None:
    """Print tables on the console."""
    console = _console()
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

    table = Table(title=_clock(times.threads), title_justify="left")
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
            _rate(row.throughput),
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


def _clock(threads: int) -> str:
    return "processor time, 1 thread" if threads == 1 else f"{threads} threads"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2f}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3f} {unit}"
    return f"{seconds / 1e-6:.2f} us"
