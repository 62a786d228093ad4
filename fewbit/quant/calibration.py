"""What calibration found: the static scale, and perhaps zero point, of each layer's activations.

It reads as a mapping from layer names to scales, so a plain dict of floats serves in its place.
Saved as JSON, in which a float is written so that it is read back bit by bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fewbit.base.files import PathLike, replacing_file
from fewbit.errors import Error, Place, UsageError

_VERSION = 1


@dataclass(frozen=True)
class Calibration(Mapping[str, float]):
    """Scales by layer name; `zero_points` has the asymmetric layers."""

    scales: Mapping[str, float] = field(default_factory=dict[str, float])
    zero_points: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        for name, scale in self.scales.items():
            if not (math.isfinite(scale) and scale > 0):
                raise Error(
                    f"an activation scale of {scale} is not a positive number",
                    place=Place(layer=name),
                    hint="calibrate the layer again",
                )

    @staticmethod
    def of(value: Calibration | Mapping[str, float] | PathLike) -> Calibration:
        """A calibration from itself, from a mapping of scales, or from a saved file."""
        if isinstance(value, Calibration):
            return value
        if isinstance(value, Mapping):
            return Calibration(dict(value))
        return Calibration.load(value)

    @staticmethod
    def load(path: PathLike) -> Calibration:
        place = Place(file=str(path))
        try:
            data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(
                f"cannot read the calibration: {error.strerror}", place=place
            ) from None
        except ValueError as error:
            raise UsageError(f"the calibration is not JSON: {error}", place=place) from None
        if not isinstance(data, dict) or cast(dict[str, Any], data).get("version") != _VERSION:
            raise UsageError(
                f"this is not a calibration of version {_VERSION}",
                place=place,
                hint="make it with Calibration.save",
            )
        try:
            return _read(cast(dict[str, Any], data))
        except Error as error:
            raise error.at(file=str(path)) from None

    def save(self, path: PathLike) -> None:
        """Write a JSON file, whole or not at all."""
        data = {
            "version": _VERSION,
            "scales": dict(self.scales),
            "zero_points": dict(self.zero_points),
        }
        with replacing_file(path) as file:
            file.write((json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())

    def __getitem__(self, name: str) -> float:
        return self.scales[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scales)

    def __len__(self) -> int:
        return len(self.scales)


def _read(data: dict[str, Any]) -> Calibration:
    scales: Any = data.get("scales")
    zero_points: Any = data.get("zero_points", {})
    if not _maps_to(scales, (int, float)) or not _maps_to(zero_points, (int,)):
        raise UsageError("a calibration maps layers to scales, which are numbers")
    return Calibration({name: float(scale) for name, scale in scales.items()}, zero_points)


def _maps_to(data: Any, types: tuple[type, ...]) -> bool:
    if not isinstance(data, dict):
        return False
    return all(type(value) in types for value in cast(dict[str, Any], data).values())
