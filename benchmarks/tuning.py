"""Tiles that the search finds for IREE, beside IREE's own: products and convolutions of the zoo.

    python benchmarks/tuning.py search MODEL...      search, and keep results in --db
    python benchmarks/tuning.py ablation MODEL...    what each part of the search is good for
    python benchmarks/tuning.py rank MODEL...        the model's order beside the measured one
    python benchmarks/tuning.py table                what the database has, as tables

The baseline is IREE with its own flags, for this processor, on one thread. Each op is a dispatch as
IREE makes it, compiled alone and called in this process; times are the least CPU time of twelve
rounds, by turns with the default. What was begun goes on.
"""
# pyright: basic

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fewbit.frontends import import_model
from fewbit.hardware.host import host
from fewbit.models.registry import create, find_entry
from fewbit.targets.iree.devices import compile_flags
from fewbit.targets.iree.lowering import Lowering
from fewbit.tune.analytic import Analytic
from fewbit.tune.database import Database, Key
from fewbit.tune.iree.build import build
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.measured import Measured
from fewbit.tune.iree.tuning import key_of
from fewbit.tune.job import Job, run_job
from fewbit.tune.model import best
from fewbit.tune.schedule import Schedule
from fewbit.tune.space import schedules

OURS = ("data-tiling", "ukernels", "opt-level")
"""Flags that fewbit adds for speed; IREE's default has none of them."""
FIRST, AROUND = 5, 3
RANKED = 16
"""Schedules of an op, drawn at random."""
ABLATED = 5
"""Trials of each kind."""
MODEL = Analytic(host())


def dispatches(model: str) -> list[Configured]:
    """The products of a model that IREE's tiles can be replaced in."""
    entry = find_entry(model)
    lowering = Lowering(import_model(create(model), entry.example_inputs(1)), {})
    lowering.run()
    source, _ = lowering.finish()
    flags = [f for f in compile_flags("iree-cpu") if not any(word in f for word in OURS)]
    found = build(source, flags, model).dispatches
    return [d for d in found if "_initializer_" not in d.name and d.reason is None]


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> np.ndarray:
        return np.argsort(np.argsort(values)).astype(float)

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def search(models: Sequence[str], database: Database) -> None:
    for model in models:
        for dispatch in dispatches(model):
            key = key_of(dispatch, host())
            if database.get(key) is not None:
                continue
            job = Job(key, dispatch.name, dispatch.text, host(), first=FIRST, around=AROUND)
            result = run_job(job, database).result
            gain = 1 / result.ratio
            print(
                f"{model} {dispatch.name} {gain:.2f}x {result.schedule} {result.reason}", flush=True
            )


def rank(models: Sequence[str], count: int) -> None:
    """For some ops: schedules drawn from all, ranked by the model and by their times."""
    found: list[float] = []
    for model in models:
        for dispatch in dispatches(model)[:count]:
            nest, _ = dispatch.nest.without_units()
            pool = list(schedules(nest, host()))
            with TemporaryDirectory() as folder:
                measured = Measured(dispatch, Path(folder))
                if len(pool) < RANKED or measured.can(nest) is not None:
                    continue
                chosen = np.random.default_rng(0).choice(len(pool), RANKED, replace=False)
                trials = measured.try_all([pool[i] for i in chosen])
            timed = [(t.schedule, t.ratio) for t in trials if t.ratio is not None]
            if len(timed) < RANKED // 2:
                continue
            seconds = [MODEL.seconds(nest, s) for s, _ in timed]
            found.append(spearman(seconds, [r for _, r in timed]))
            print(f"{model} {dispatch.name} {found[-1]:.2f} of {len(timed)}", flush=True)
    ranks = sorted(found)
    print(f"median {ranks[len(ranks) // 2]:.2f}, least {ranks[0]:.2f}, {len(ranks)} ops")


def ablation(models: Sequence[str], database: Database, path: Path, count: int) -> None:
    """For some ops: kinds of schedules, each with as many trials, timed by turns."""
    for model in models:
        done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        known = {entry["signature"] for entry in done}
        for dispatch in dispatches(model)[:count]:
            if dispatch.signature in known:
                continue
            known.add(dispatch.signature)
            found = ablate(dispatch)
            if found is None:
                continue
            with path.open("a") as file:
                file.write(
                    json.dumps({"model": model, "signature": dispatch.signature, **found}) + "\n"
                )
            print(model, dispatch.name, found, flush=True)


def ablate(dispatch: Configured) -> dict[str, float] | None:
    nest, _ = dispatch.nest.without_units()
    pool = list(schedules(nest, host()))
    if len(pool) < ABLATED:
        return None
    given = dispatch.default.distribution
    kinds = {
        "micro-tile only": _micro(nest, pool, given),
        "cache tiles too": best(MODEL, nest, pool, ABLATED),
        "random": _random(pool),
        "zigzag": _zigzag(nest),
    }
    with TemporaryDirectory() as folder:
        measured = Measured(dispatch, Path(folder))
        if measured.can(nest) is not None:
            return None
        wanted = list(dict.fromkeys(s for each in kinds.values() for s in each))
        trials = {t.schedule: t for t in measured.try_all(wanted)}
    found: dict[str, float] = {}
    for kind, tried in kinds.items():
        ratios = [r for s in tried if (r := trials[s].ratio) is not None]
        if tried:
            found[kind] = 1 / min([1.0, *ratios])
            found[f"{kind}: first"] = 1 / (trials[tried[0]].ratio or 1.0)
    timed = [(s, t.ratio) for s, t in trials.items() if t.ratio is not None]
    if len(timed) > 4:
        found["spearman"] = spearman(
            [MODEL.seconds(nest, s) for s, _ in timed], [r for _, r in timed]
        )
    return found


def _micro(nest, pool: list[Schedule], given: tuple[int, ...]) -> list[Schedule]:
    """Register tiles alone, in workgroups as IREE has them."""
    tiles = {s.vector: s for s in pool}
    whole = [
        Schedule(tuple(max(g, v) if g else 0 for g, v in zip(given, vector, strict=True)), vector)
        for vector in tiles
    ]
    return best(MODEL, nest, whole, ABLATED)


def _random(pool: list[Schedule]) -> list[Schedule]:
    chosen = np.random.default_rng(0).choice(len(pool), ABLATED, replace=False)
    return [pool[i] for i in chosen]


def _zigzag(nest) -> list[Schedule]:
    try:
        from fewbit.tune.zigzag import zigzag_schedules
    except ImportError:
        return []
    return zigzag_schedules(nest, host())[:ABLATED]


def geomean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def table(database: Database, path: Path) -> None:
    results = [r for r in database.results("iree-cpu") if r.key.hardware == host().identity]
    gains = [1 / r.ratio for r in results]
    by_kind: dict[str, list[float]] = {}
    for result in results:
        by_kind.setdefault(_kind(result.key), []).append(1 / result.ratio)
    print("| ops | number | geometric mean | least | most |\n|---|---|---|---|---|")
    for kind, values in (*sorted(by_kind.items()), ("all", gains)):
        if values:
            row = (
                kind,
                len(values),
                f"{geomean(values):.2f}x",
                f"{min(values):.2f}x",
                f"{max(values):.2f}x",
            )
            print("| " + " | ".join(map(str, row)) + " |")
    if not path.exists():
        return
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    print(f"\nof {len(entries)} ops, {ABLATED} trials of each kind:\n")
    print("| tiles | best of trials | the first alone |\n|---|---|---|")
    for kind in ("micro-tile only", "cache tiles too", "zigzag", "random"):
        values = [e[kind] for e in entries if kind in e]
        first = [e[f"{kind}: first"] for e in entries if f"{kind}: first" in e]
        print(f"| {kind} ({len(values)} ops) | {geomean(values):.2f}x | {geomean(first):.2f}x |")
    ranks = sorted(e["spearman"] for e in entries if "spearman" in e)
    if ranks:
        enough = sum(r >= 0.8 for r in ranks) / len(ranks)
        print(
            f"\nrank correlation: median {ranks[len(ranks) // 2]:.2f}, least {ranks[0]:.2f}, "
            f"at least 0.8 for {enough:.0%}"
        )


def _kind(key: Key) -> str:
    inputs = key.signature.partition(" o:")[0]
    if not any("+d" in part for part in inputs.split()):
        return "products"
    return "depthwise convolutions" if _depthwise(key.signature) else "convolutions"


def _depthwise(signature: str) -> bool:
    operands = [part.partition("[")[2].rstrip("]") for part in signature.split()[1:4]]
    last = operands[-1].split(",")[-1]
    return all(last in part.replace("+", ",").split(",") for part in operands)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("search", "ablation", "rank", "table"))
    parser.add_argument("models", nargs="*", default=["lenet"])
    parser.add_argument("--db", type=Path, default=Path("build/tuning.db"))
    parser.add_argument("--count", type=int, default=6, help="ops of a model that are ablated")
    given = parser.parse_args()
    database, path = Database(given.db), given.db.with_suffix(".jsonl")
    if given.what == "search":
        search(given.models, database)
    elif given.what == "ablation":
        ablation(given.models, database, path, given.count)
    elif given.what == "rank":
        rank(given.models, given.count)
    if given.what != "rank":
        table(database, path)


if __name__ == "__main__":
    main()
