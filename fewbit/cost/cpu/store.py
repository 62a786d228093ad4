"""Calibrations kept in the user's cache folder, as JSON: one for a processor, its instructions, and
the kernels as they are.

Kernels that change make a calibration void, because its name holds a hash of their source. What
cannot be read is no error: costs are then estimated, and a note says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import fewbit
from fewbit.base import progress
from fewbit.base.cache import cache_folder
from fewbit.base.files import replacing_file
from fewbit.cost.cpu.calibration import Accuracy, Calibration, Read
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.machine import this_machine

FORMAT = 1
_SOURCES = ("kernels", "cost/cpu")


@cache
def kernels_hash() -> str:
    """Return a hash of the source of the kernels and of their cost model."""
    root, digest = Path(fewbit.__file__).parent, hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def calibration_path(isa: Isa) -> Path:
    named = "\n".join((this_machine().processor, isa.cpu, isa.features, kernels_hash()))
    return cache_folder() / f"calibration-{hashlib.sha256(named.encode()).hexdigest()[:16]}.json"


def save_calibration(calibration: Calibration) -> Path:
    path = calibration_path(calibration.isa)
    write_json(path, to_json(calibration))
    return path


def load_calibration(isa: Isa | None = None) -> Calibration:
    """Return what was measured on this machine, or the default, which is not calibrated."""
    isa = isa or Isa.host()
    stored = read_json(calibration_path(isa)) if isa.name == "host" else None
    if stored is None:
        return Calibration.default(isa)
    try:
        return from_json(stored, isa)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        progress.say(
            f"warning: {calibration_path(isa)} is not a calibration ({error}); costs are estimated "
            "until 'fewbit tune calibrate' writes it anew"
        )
        return Calibration.default(isa)


def to_json(calibration: Calibration) -> dict[str, Any]:
    accuracy = calibration.accuracy
    return {
        "format": FORMAT,
        "processor": calibration.processor,
        "isa": calibration.isa.name,
        "kernels": kernels_hash(),
        "date": calibration.date,
        "accuracy": None if accuracy is None else vars(accuracy),
        "macs_per_second": dict(calibration.macs),
        "read_seconds_per_byte": [list(point) for point in calibration.read.points],
        "coefficients": dict(calibration.coefficients),
    }


def from_json(stored: Mapping[str, Any], isa: Isa) -> Calibration:
    if stored["format"] != FORMAT:
        raise ValueError(f"its format is {stored['format']}, not {FORMAT}")
    points = tuple((int(size), _positive(time)) for size, time in stored["read_seconds_per_byte"])
    if not points or list(points) != sorted(points):
        raise ValueError("its memory is in no order")
    accuracy = stored["accuracy"]
    return Calibration(
        processor=str(stored["processor"]),
        isa=isa,
        coefficients={str(k): _positive(v) for k, v in stored["coefficients"].items()},
        read=Read(points),
        macs={kind: _positive(stored["macs_per_second"][kind]) for kind in ("f32", "i8")},
        accuracy=None if accuracy is None else Accuracy(**accuracy),
        date=str(stored["date"]),
    )


def _positive(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is no time")
    return float(value)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None, with a warning, where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        progress.say(f"warning: {path} cannot be read ({error}); it is ignored")
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    with replacing_file(path) as file:
        file.write(json.dumps(value, indent=1).encode() + b"\n")
