"""The table of `fewbit inspect --cost`: the time of each layer, as it is and at each width."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from fewbit.cost.cpu import Calibration, LayerTime


def plain_times(
    times: list[LayerTime], calibration: Calibration, threads: int
) -> dict[str, object]:
    """Return the table as JSON has it."""
    total = sum(time.seconds for time in times)
    return {
        "calibrated": calibration.is_calibrated,
        "date": calibration.date,
        "threads": threads,
        "seconds": total,
        "layers": [
            {
                "name": time.name,
                "kernel": time.kernel,
                "seconds": time.seconds,
                "share": time.seconds / total,
                "seconds_by_width": time.by_width,
                "widest_as_fast": time.widest_as_fast,
            }
            for time in times
        ],
    }


def print_times(
    times: list[LayerTime], calibration: Calibration, threads: int, console: Console
) -> None:
    from rich.table import Table

    how = f"calibrated {calibration.date}" if calibration.is_calibrated else "not calibrated"
    count = "1 thread" if threads == 1 else f"{threads} threads"
    table = Table(title=f"Predicted time in us, {count}, {how}", title_justify="left")
    table.add_column("layer", overflow="fold")
    widths = sorted(times[0].by_width) if times else []
    for name in ("time", "share", *(f"w{width}" for width in widths), "as fast"):
        table.add_column(name, justify="right")
    total = sum(time.seconds for time in times)
    for time in times:
        widest = time.widest_as_fast
        table.add_row(
            time.name,
            microseconds(time.seconds),
            f"{time.seconds / total:.1%}",
            *(microseconds(time.by_width[width]) for width in widths),
            "" if widest is None else f"w{widest}",
        )
    table.add_section()
    table.add_row(
        f"{len(times)} layers",
        microseconds(total),
        "",
        *(microseconds(sum(time.by_width[width] for time in times)) for width in widths),
        "",
    )
    console.print(table)
    if not calibration.is_calibrated:
        console.print("'fewbit tune calibrate' measures this machine, for better predictions.")


def microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
