"""ZigZag run on a nest, and the loops that it puts into each memory as tiles of ours."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbit.base.progress import say
from fewbit.cost.hardware import Hardware
from fewbit.cost.loops import LoopNest
from fewbit.errors import MissingToolError
from fewbit.tune.analytic import Analytic
from fewbit.tune.model import best
from fewbit.tune.roles import Roles, roles_of
from fewbit.tune.schedule import Schedule, Tile
from fewbit.tune.space import accumulator_bits, schedules
from fewbit.tune.zigzag.accelerator import accelerator_of
from fewbit.tune.zigzag.workload import NAMES, layer_of, refusal

FACTORS = 5
"""How finely ZigZag splits loops: its time doubles or triples with each."""
CONSIDERED = 200
ARRAYS = 2
"""Register tiles that are tried as arrays."""


@dataclass(frozen=True)
class Zigzag:
    """Ranks ZigZag's own schedules first, and all others as our model does."""

    hardware: Hardware
    chosen: dict[str, list[Schedule]] = field(default_factory=dict[str, list[Schedule]])
    name: str = "zigzag"

    @property
    def _fallback(self) -> Analytic:
        return Analytic(self.hardware)

    def can(self, nest: LoopNest) -> str | None:
        return refusal(nest)

    def own(self, nest: LoopNest) -> list[Schedule]:
        """Return what ZigZag chose for a nest."""
        if nest.signature not in self.chosen:
            self.chosen[nest.signature] = zigzag_schedules(nest, self.hardware)
        return self.chosen[nest.signature]

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float:
        own = self.own(nest)
        if schedule in own:
            return (own.index(schedule) - len(own)) * 1e-9
        return self._fallback.seconds(nest, schedule)


def zigzag_schedules(nest: LoopNest, hardware: Hardware) -> list[Schedule]:
    """Return what ZigZag makes of a nest; nothing where it cannot express it, or fails."""
    roles = roles_of(nest)
    if refusal(nest) is not None or roles is None:
        return []
    choices: list[Schedule] = []
    arrays: dict[Tile, Tile] = {}
    for schedule in best(Analytic(hardware), nest, schedules(nest, hardware), CONSIDERED):
        tile = schedule.vector
        arrays.setdefault(tuple(t for i, t in enumerate(tile) if i not in roles.sums), tile)
    for vector in list(arrays.values())[:ARRAYS]:
        try:
            levels = run(nest, roles, vector, hardware)
        except MissingToolError:
            raise
        except Exception as e:  # one layer that fails does not stop the others
            say(f"ZigZag fails on {nest.signature}: {type(e).__name__}: {e}")
            continue
        choices += _schedules(nest, roles, vector, levels)
    return list(dict.fromkeys(choices))


def run(nest: LoopNest, roles: Roles, vector: Tile, hardware: Hardware) -> list[Tile]:
    """Return the part of the nest that each cache holds, the nearest first."""
    try:
        import yaml  # pyright: ignore[reportMissingModuleSource]

        zigzag: Any = import_module("zigzag.api")
    except ImportError as e:
        raise MissingToolError(
            "ZigZag is not installed", hint="pip install 'fewbit[zigzag]'"
        ) from e
    rows = roles.rows[-1] if roles.rows else None
    spatial = {"D1": [f"{NAMES[roles.columns]}, {vector[roles.columns]}"]}
    if rows is not None:
        spatial["D2"] = [f"{NAMES[rows]}, {vector[rows]}"]
    mapping = {
        "name": "default",
        "spatial_mapping": spatial,
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
    height = 1 if rows is None else vector[rows]
    bits = accumulator_bits(nest)
    machine = accelerator_of(hardware, height, vector[roles.columns], bits)
    inputs = {"workload": [layer_of(nest)], "machine": machine, "mapping": [mapping]}
    root = logging.getLogger()
    level = root.level
    with TemporaryDirectory(prefix="fewbit-zigzag-") as folder:
        paths: dict[str, str] = {}
        for name, content in inputs.items():
            paths[name] = str(Path(folder) / f"{name}.yaml")
            Path(paths[name]).write_text(yaml.safe_dump(content, sort_keys=False))
        logging.disable(logging.CRITICAL)
        try:
            evaluated: Any = zigzag.get_hardware_performance_zigzag(
                paths["workload"],
                paths["machine"],
                paths["mapping"],
                opt="latency",
                lpf_limit=FACTORS,
                temporal_mapping_type="even",
                dump_folder=str(Path(folder) / "out"),
                pickle_filename=str(Path(folder) / "out" / "all.pickle"),
                loma_show_progress_bar=False,
            )
        finally:
            logging.disable(logging.NOTSET)
            root.setLevel(level)
    temporal: Any = evaluated[2][0][1][0][0].mapping.temporal_mapping.mapping_dic_stationary
    return held_tiles(temporal, nest, roles, vector)


def held_tiles(
    temporal: Mapping[Any, list[list[tuple[Any, int]]]], nest: LoopNest, roles: Roles, vector: Tile
) -> list[Tile]:
    """Return the tile in each memory: what the array has, times the loops up to there.

    Memories of inputs begin with a cache; sums have a level of their own below.
    """
    inner = [1] * len(nest.loops)
    inner[roles.columns] = vector[roles.columns]
    if roles.rows:
        inner[roles.rows[-1]] = vector[roles.rows[-1]]
    by_operand = {str(operand): levels for operand, levels in temporal.items()}
    inputs = by_operand.get("I") or next(iter(by_operand.values()))
    tiles: list[Tile] = []
    tile = list(inner)
    for level in inputs[:-1]:
        for name, size in level:
            loop = NAMES.index(str(name))
            tile[loop] = min(nest.extents[loop], tile[loop] * int(size))
        tiles.append(tuple(tile))
    return tiles


def _schedules(
    nest: LoopNest, roles: Roles, vector: Tile, levels: Iterable[Tile]
) -> list[Schedule]:
    """Return each cache's part as a workgroup; and the nearest inside the next."""
    parts = [tuple(0 if i in roles.sums else size for i, size in enumerate(t)) for t in levels]
    schedules = [Schedule(part, vector) for part in parts if _divides(part, vector)]
    if len(parts) > 1 and prod(levels_of(parts[0])) < prod(levels_of(parts[1])):
        near = tuple(
            size if i not in roles.windows else 0 for i, size in enumerate(next(iter(levels)))
        )
        schedules.append(Schedule(parts[1], vector, near))
    return schedules


def levels_of(tile: Tile) -> list[int]:
    return [size or 1 for size in tile]


def _divides(part: Tile, vector: Tile) -> bool:
    return all(p == 0 or p % v == 0 for p, v in zip(part, vector, strict=True))
