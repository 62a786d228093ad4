"""A dispatch as IREE configured it: which op leads, what tiles it has, and how to change them.

The text that IREE dumped is changed in place, attribute by attribute, so all of its constants stay
to the bit. Which attribute belongs to which op follows from their order, which is that of the ops.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fewbit.cost.loops import LoopNest
from fewbit.cost.loops.dumps import generic_text, parse_generic
from fewbit.cost.loops.read import attribute_of, list_nests, read_nest
from fewbit.tune.schedule import Schedule, spread

PREFIX = "configured_"
PIPELINES = ("DoubleTilingExpert", "ConvTileAndDecomposeExpert")
"""Ways of IREE's to compile a dispatch whose tiles may be chosen."""
FUSED = " + "
"""Between the signature of the op that leads and what is fused with it."""
LEVELS = (
    "distribution",
    "cache_parallel",
    "cache_reduction",
    "vector_common_parallel",
    "vector_reduction",
    "vector_inner_parallel",
)
_CONFIG = re.compile(r"#iree_cpu\.lowering_config<([^<>]*)>")
_LEVEL = re.compile(r"(\w+) = \[([\d, \[\]]*)\]")
_PIPELINE = re.compile(r"pipeline = #iree_cpu\.pipeline<(\w+)>")
_EXECUTABLE = re.compile(r"hal\.executable (?:public|private) @([\w$.]+)")

Config = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Tiled:
    """An op with tiles."""

    op: Operation
    nest: LoopNest | None
    config: Config


class Configured:
    """A dispatch with the tiles that IREE chose."""

    pipelines: ClassVar[Collection[str]] = PIPELINES

    def __init__(self, text: str, name: str = "dispatch") -> None:
        self.text = text
        match = _EXECUTABLE.search(text)
        self.name = match[1] if match else name

    @classmethod
    def read(cls, path: Path) -> Configured:
        return cls(path.read_text(encoding="utf-8"), path.stem.removeprefix(PREFIX))

    @cached_property
    def module(self) -> ModuleOp:
        return parse_generic(generic_text(self.text, self.name), self.name)

    @cached_property
    def pipeline(self) -> str | None:
        match = _PIPELINE.search(self.text)
        return match[1] if match else None

    @cached_property
    def tiled(self) -> list[Tiled]:
        ops = [op for op in self.module.walk() if attribute_of(op, "lowering_config") is not None]
        texts = _CONFIG.findall(self.text)
        if len(ops) != len(texts):
            return []
        nests = (read_nest(op) for op in ops)
        return [
            Tiled(op, nest if isinstance(nest, LoopNest) else None, _parse(text))
            for op, nest, text in zip(ops, nests, texts, strict=True)
        ]

    @cached_property
    def root(self) -> Tiled | None:
        """The op whose tiles the others follow: the one that is distributed."""
        return next((t for t in self.tiled if "distribution" in t.config), None)

    @cached_property
    def reason(self) -> str | None:
        """Why its tiles are left to IREE; None where they may be chosen."""
        if self.pipeline not in self.pipelines:
            return f"IREE compiles it in a way of its own ({self.pipeline or 'no pipeline'})"
        if self.root is None or self.root.nest is None:
            return "no op of it leads"
        if not self.root.nest.multiplies:
            return f"it multiplies no matrices ({self.root.nest.shape_class})"
        return None

    @property
    def leader(self) -> Tiled:
        assert self.root is not None, "only dispatches that can be tuned"
        return self.root

    @property
    def nest(self) -> LoopNest:
        """The loops of the op that leads."""
        nest = self.leader.nest
        assert nest is not None, "only dispatches that can be tuned"
        return nest

    @cached_property
    def signature(self) -> str:
        """The op that leads, and what is fused with it."""
        nests = list_nests(self.module).nests
        others = [n for n in nests if n.multiplies == 0 and n.shape_class != "fill"]
        fused = sorted({f"{n.shape_class}{{{_body(n)}}}" for n in others})
        return FUSED.join([self.nest.signature, *fused])

    @property
    def default(self) -> Schedule:
        """What IREE chose, for the nest without loops of one step."""
        root = self.leader
        _, left = self.nest.without_units()
        config, loops = root.config, len(self.nest.loops)
        vector = _merge(config, "vector_common_parallel", "vector_reduction", loops)
        cache = _merge(config, "cache_parallel", "cache_reduction", loops)
        distribution = config["distribution"]
        return Schedule(
            tuple(distribution[i] for i in left),
            tuple(vector[i] for i in left),
            tuple(cache[i] for i in left) if any(cache) else (),
        )

    def with_schedule(self, schedule: Schedule) -> str:
        """Return the text with other tiles, those of fused ops after the leading one's."""
        root = self.leader
        levels = self._levels(root, schedule)
        loops_of = _followers(root, self.tiled)
        configs: list[Config] = []
        for tiled in self.tiled:
            if tiled is root:
                configs.append(levels)
            else:
                configs.append(_following(tiled, loops_of.get(tiled.op, {}), levels))
        return self._replace(configs)

    def _levels(self, root: Tiled, schedule: Schedule) -> dict[str, tuple[int, ...]]:
        _, left = self.nest.without_units()
        kinds = [loop.kind for loop in self.nest.loops]
        count = len(kinds)
        # A dynamic dimension that stands for one step is still taken in steps of one.
        dynamic = [i for i, loop in enumerate(self.nest.loops) if loop.dynamic]
        vector = spread(schedule.vector, left, count, 1)
        distribution = spread(schedule.distribution, left, count, 0)
        for loop in dynamic:
            distribution[loop] = root.config["distribution"][loop]
        levels = {"distribution": tuple(distribution)}
        if schedule.cache:
            cache = spread(schedule.cache, left, count, 0)
            levels["cache_parallel"] = _only(cache, kinds, "parallel")
            levels["cache_reduction"] = _only(cache, kinds, "reduction")
        levels["vector_common_parallel"] = _only(vector, kinds, "parallel")
        if "reduction" in kinds:
            levels["vector_reduction"] = _only(vector, kinds, "reduction")
        return levels

    def _replace(self, configs: list[Config]) -> str:
        left = iter(configs)
        return _CONFIG.sub(lambda _: _print(next(left)), self.text)


def _body(nest: LoopNest) -> str:
    return ",".join(sorted({op for op in nest.body if op != "linalg.yield"}))


def _parse(text: str) -> Config:
    return {
        level: tuple(int(n) for n in re.findall(r"\d+", sizes))
        for level, sizes in _LEVEL.findall(text)
    }


def _print(config: Config) -> str:
    levels = (f"{name} = {list(config[name])}" for name in LEVELS if name in config)
    return f"#iree_cpu.lowering_config<{', '.join(levels)}>"


def _only(tile: list[int], kinds: list[str], kind: str) -> tuple[int, ...]:
    return tuple(size if k == kind else 0 for size, k in zip(tile, kinds, strict=True))


def _merge(config: Config, parallel: str, reduction: str, loops: int) -> list[int]:
    pairs = zip(config.get(parallel, [0] * loops), config.get(reduction, [0] * loops), strict=True)
    return [max(pair) for pair in pairs]


def _followers(root: Tiled, tiled: list[Tiled]) -> dict[Operation, dict[int, int]]:
    """Map the loops of ops that share tensors with the leading one to its loops."""
    known: dict[SSAValue, dict[int, int]] = {}
    followers: dict[Operation, dict[int, int]] = {root.op: {i: i for i in range(64)}}
    pending = [root.op]
    while pending:
        op = pending.pop()
        for value, singles in _indexed_tensors(op):
            dims = known.setdefault(value, {})
            for dim, loop in enumerate(singles):
                if loop in followers[op]:
                    dims.setdefault(dim, followers[op][loop])
        for other in tiled:
            if other.op in followers:
                continue
            loops = {
                loop: known[value][dim]
                for value, singles in _indexed_tensors(other.op)
                if value in known
                for dim, loop in enumerate(singles)
                if loop is not None and dim in known[value]
            }
            if loops:
                followers[other.op] = loops
                pending.append(other.op)
    return followers


def _indexed_tensors(op: Operation) -> list[tuple[SSAValue, list[int | None]]]:
    """Return the tensors of an op, and for each of their dimensions the loop that is its index."""
    nest = read_nest(op)
    maps = attribute_of(op, "indexing_maps")
    if not isinstance(nest, LoopNest) or maps is None:
        return []
    tensors: list[tuple[SSAValue, list[int | None]]] = []
    data: list[AffineMap] = [map.data for map in cast("Any", maps).data]
    values = [*op.operands, *op.results]
    for value, map in zip(values, [*data, *data[len(data) - len(op.results) :]], strict=False):
        tensors.append((value, [getattr(expr, "position", None) for expr in map.results]))
    return tensors


def _following(tiled: Tiled, loops: Mapping[int, int], levels: Config) -> Config:
    config = dict(tiled.config)
    for level, sizes in config.items():
        if level not in levels:
            continue
        changed = list(sizes)
        for loop, leading in loops.items():
            if levels[level][leading]:
                changed[loop] = levels[level][leading]
        config[level] = tuple(changed)
    return config
