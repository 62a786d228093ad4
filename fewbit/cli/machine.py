"""`fewbit tune calibrate` and `show`: how fast kernels are on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.options import AsJson

if TYPE_CHECKING:
    from fewbit.cost.cpu import Calibration


def calibrate_machine(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer kernels, less exact.")] = False,
    as_json: AsJson = False,
) -> None:
    """Time kernels on this machine, about a minute, and keep it: layers' times are then known."""
    from fewbit.cost.cpu.calibrate import FULL, QUICK, calibrate
    from fewbit.cost.cpu.store import save_calibration

    calibration = calibrate(effort=QUICK if quick else FULL)
    path = save_calibration(calibration)
    if not as_json:
        print(f"kept in {path}")
    _print(calibration, as_json)


def show_machine(as_json: AsJson = False) -> None:
    """Show what is known of this machine: whether it was calibrated, and its bounds."""
    from fewbit.cost.cpu.store import load_calibration

    _print(load_calibration(), as_json)


def _print(found: Calibration, as_json: bool) -> None:
    from fewbit.cost.cpu.store import to_json

    print_json(to_json(found)) if as_json else print(describe(found))


def describe(calibration: Calibration) -> str:
    """Return what is known of a machine, in a few lines."""
    bounds = calibration.bounds()
    state = (
        f"calibrated on {calibration.date}"
        if calibration.is_calibrated
        else "not calibrated: estimates; 'fewbit tune calibrate' measures this machine"
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
