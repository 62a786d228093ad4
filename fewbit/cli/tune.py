"""`fewbit tune`: measure this machine for the cost model, and show what is known of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.analysis.cost import Calibration


def tune(
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Time kernels on this machine, about a minute, and keep it."
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --calibrate: fewer kernels, less exact.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the calibration that is kept.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what kernels take on this machine, so that times can be predicted."""
    if not calibrate and not show:
        raise UsageError(
            "say what to tune", hint="--calibrate measures this machine, --show shows the result"
        )
    if quick and not calibrate:
        raise UsageError("--quick is for --calibrate", hint="fewbit tune --calibrate --quick")
    from fewbit.analysis.cost.store import load_calibration, save_calibration, to_json

    if calibrate:
        from fewbit.analysis.cost.calibrate import FULL, QUICK
        from fewbit.analysis.cost.calibrate import calibrate as measure

        found = measure(effort=QUICK if quick else FULL)
        path = save_calibration(found)
        if not as_json:
            print(f"kept in {path}")
    else:
        found = load_calibration()
    print(json.dumps(to_json(found)) if as_json else describe(found))


def describe(calibration: Calibration) -> str:
    """What is known of a machine, in a few lines."""
    bounds = calibration.bounds()
    state = (
        f"calibrated on {calibration.date}"
        if calibration.is_calibrated
        else "not calibrated: estimates; 'fewbit tune --calibrate' measures this machine"
    )
    sizes = [16 << 10, 512 << 10, 4 << 20, 64 << 20]
    rates = ", ".join(f"{_size(size)}: {bounds.bandwidth(size) / 1e9:.0f} GB/s" for size in sizes)
    lines = [
        calibration.processor or calibration.isa.cpu,
        state,
        f"one thread at best: {bounds.macs['f32'] / 1e9:.0f} GMAC/s of floats, "
        f"{bounds.macs['i8'] / 1e9:.0f} of bytes",
        f"reads, by the memory in use: {rates}",
    ]
    if calibration.accuracy is not None:
        lines.append(str(calibration.accuracy))
    return "\n".join(lines)


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"
