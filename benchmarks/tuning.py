"""Tiles that autotuning finds for IREE, beside IREE's own: matmuls and convolutions of the zoo.

    python benchmarks/tuning.py prepare MODEL...     compile what the search tries next
    python benchmarks/tuning.py search MODEL...      search; what was prepared is only timed
    python benchmarks/tuning.py models MODEL...      whole models, without and with what was found
    python benchmarks/tuning.py ablation MODEL...    what each part of the search is good for
    python benchmarks/tuning.py rank MODEL...        the model's order beside the measured one
    python benchmarks/tuning.py table                what the database has, as tables

The baseline is IREE with its own flags, for this processor, on one thread. Each op is a dispatch as
IREE makes it, compiled alone and called in this process; times are the minimum CPU time of twelve
rounds, by turns with the default. What was compiled is kept: to time on an idle machine, run the
command twice. A search goes by what it has timed: prepare while the machine is busy, search with
`--only-prepared` while it is not, and both again until nothing is left to prepare.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from hashlib import sha256
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fewbit.cost.hardware.host import host
from fewbit.cost.layers import made_up_inputs
from fewbit.cost.loops.nest import LoopNest
from fewbit.errors import Error, PassError
from fewbit.frontends import import_model
from fewbit.models.registry import create, find_entry, zoo
from fewbit.program.artifact import open_folder
from fewbit.runtime.iree import load_iree
from fewbit.targets.agreement import largest_difference
from fewbit.targets.iree.pipeline import to_iree
from fewbit.targets.iree.target import Iree
from fewbit.targets.target import Request
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.analytic import Analytic
from fewbit.tune.database import Database, Key
from fewbit.tune.iree.apply import apply
from fewbit.tune.iree.build import build
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.executable import Binary
from fewbit.tune.iree.measured import Measured
from fewbit.tune.iree.tuning import key_of
from fewbit.tune.model import best
from fewbit.tune.schedule import Schedule
from fewbit.tune.search import Tried
from fewbit.tune.search import search as search_op
from fewbit.tune.space import schedules
from fewbit.tune.timing import time_by_turns, timer

OURS = ("data-tiling", "ukernels", "opt-level")
"""Flags that fewbit adds for speed; IREE's default has none of them."""
FIRST, AROUND = 8, 4
RANKED = 16
"""Schedules of an op, drawn at random."""
ABLATED = 5
"""Trials of each kind."""
MODEL = Analytic(host())
SQUARES = "sums of squares"
"""The reductions of norms: they multiply and add, but are no matmuls."""
FOLDER = Path("build/tuning")
"""Where dispatches are kept, and what was compiled of them."""


def plain_flags() -> list[str]:
    return [f for f in compile_flags("iree-cpu") if not any(word in f for word in OURS)]


def dispatches(model: str) -> list[Configured]:
    """Return a model's matmuls and convolutions whose tiles can be replaced, one of each kind."""
    folder = FOLDER / model
    if not folder.is_dir():
        entry = find_entry(model)
        source, _ = to_iree(import_model(create(model), entry.example_inputs(1)))
        found = build(source, plain_flags(), model).dispatches
        folder.mkdir(parents=True)
        for each in found:
            if "_initializer_" not in each.name and each.reason is None:
                (folder / f"{each.name}.mlir").write_text(each.text)
    read = [Configured(path.read_text(), path.stem) for path in sorted(folder.glob("*.mlir"))]
    return list({dispatch.signature: dispatch for dispatch in read}.values())


def _notes(text: str) -> Path:
    """Return where notes of a configured dispatch are; its code is beside them."""
    return FOLDER / "code" / f"{sha256(text.encode()).hexdigest()[:20]}.json"


class PreparedError(Exception):
    """What the search wants next has been compiled, or must be first."""


class Kept(Measured):
    """Measures what was compiled before, and compiles only what was not."""

    compiled = 0
    only_prepared = False
    """Whether a search stops where it would have to compile."""

    def _compile(self, text: str) -> Binary:
        notes = _notes(text)
        code = notes.with_suffix(".so")
        if not notes.is_file():
            code.parent.mkdir(parents=True, exist_ok=True)
            self.compiled += 1
            try:
                made = super()._compile(text)
                code.write_bytes(made.data)
                notes.write_text(json.dumps(made.workgroups))
            except PassError as e:
                notes.write_text(json.dumps(e.what))
        data = json.loads(notes.read_text())
        if isinstance(data, str):
            raise PassError(data)
        return Binary(code.read_bytes(), tuple(data))

    def _is_compiled(self, schedule: Schedule) -> bool:
        return _notes(self.dispatch.with_schedule(schedule)).is_file()

    def prepare(self, wanted: Sequence[Schedule]) -> Tried:
        for schedule in wanted:
            self._prepare(schedule)
        raise PreparedError

    def attempt(self, wanted: Sequence[Schedule]) -> Tried:
        if self.only_prepared and not all(map(self._is_compiled, wanted)):
            raise PreparedError
        trials = self.try_all(wanted)
        assert self.times is not None
        return Tried(trials, self.times.default, self.times.noise, self.times.bar)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> np.ndarray:
        return np.argsort(np.argsort(values)).astype(float)

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def search(models: Sequence[str], database: Database, *, prepare: bool) -> None:
    """Search for all ops that have no result yet; to prepare is to compile what is tried next."""
    for model in models:
        for dispatch in dispatches(model):
            key = key_of(dispatch, host())
            if database.get(key) is not None:
                continue
            with TemporaryDirectory() as folder:
                _search(model, dispatch, key, Path(folder), database, prepare)


def _search(
    model: str, dispatch: Configured, key: Key, folder: Path, database: Database, prepare: bool
) -> None:
    nest, _ = dispatch.nest.without_units()
    measured = Kept(dispatch, folder)
    if measured.can(nest) is not None:
        return
    attempt = measured.prepare if prepare else measured.attempt
    pool = schedules(nest, host())
    try:
        result = search_op(key, nest, pool, MODEL, attempt, database, first=FIRST, around=AROUND)
    except PreparedError:
        print(f"{model} {dispatch.name}: {measured.compiled} compiled", flush=True)
        return
    print(f"{model} {dispatch.name} {1 / result.ratio:.2f}x {result.schedule} {result.reason}")


def models(names: Sequence[str], database: Database) -> None:
    """Whole models with IREE's own flags and with fewbit's, without and with what was found."""
    for name in names:
        folder = FOLDER / "models" / name
        if not (folder / "inputs.npz").is_file():
            _build_model(name, folder, database)
        stored = np.load(folder / "inputs.npz")
        inputs = [stored[key] for key in stored.files]
        row: dict[str, object] = {"model": name}
        for kind in ("plain", "ours"):
            row |= _time_model(folder, kind, inputs)
        with (FOLDER / "models.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


def _build_model(name: str, folder: Path, database: Database) -> None:
    program = import_model(create(name), find_entry(name).example_inputs(1))
    source, parameters = to_iree(program)
    for kind, flags in (("plain", plain_flags()), ("ours", compile_flags("iree-cpu"))):
        try:
            found = apply(source, flags, "model", database)
        except Error as e:
            print(f"{name}, {kind}: {e.what}")
            continue
        for build_, suffix in ((found.default, ""), (found.tuned, "-tuned")):
            if build_ is not None:
                Iree().write_made(
                    program,
                    parameters,
                    build_.made,
                    Request("iree-cpu"),
                    folder / f"{kind}{suffix}",
                )
    np.savez(folder / "inputs.npz", *made_up_inputs(program, dynamic=1))


def _time_model(folder: Path, kind: str, inputs: Sequence[np.ndarray]) -> dict[str, float]:
    """The default twice, and the tuned one: seconds, noise, and how far results differ."""
    paths = [folder / kind, folder / kind, folder / f"{kind}-tuned"]
    calls = [load_iree(open_folder(p)).prepare(*inputs, threads=1) for p in paths if p.is_dir()]
    if not calls:
        return {}
    outputs = [call() for call in calls]
    times = time_by_turns(
        (timer(calls[0].run), timer(calls[1].run)), [timer(call.run) for call in calls[2:]]
    )
    values = {f"{kind} before": times.default, f"{kind} noise": times.noise}
    if len(calls) > 2:
        gap = largest_difference(outputs[0], outputs[2])
        values |= {f"{kind} after": times.default * times.ratio(0), f"{kind} gap": gap}
    return values


def rank(models: Sequence[str], count: int) -> None:
    """For some ops: schedules drawn from all, ranked by the model and by their times."""
    found: list[float] = []
    for model in models:
        for dispatch in dispatches(model)[:count]:
            nest, _ = dispatch.nest.without_units()
            pool = list(schedules(nest, host()))
            with TemporaryDirectory() as folder:
                measured = Kept(dispatch, Path(folder))
                if len(pool) < RANKED or measured.can(nest) is not None:
                    continue
                chosen = np.random.default_rng(0).choice(len(pool), RANKED, replace=False)
                trials = measured.try_all([pool[int(i)] for i in chosen])
            timed = [(t.schedule, t.ratio) for t in trials if t.ratio is not None]
            if len(timed) < RANKED // 2:
                continue
            seconds = [MODEL.seconds(nest, s) for s, _ in timed]
            found.append(spearman(seconds, [r for _, r in timed]))
            print(f"{model} {dispatch.name} {found[-1]:.2f} of {len(timed)}", flush=True)
    ranks = sorted(found)
    print(f"median {ranks[len(ranks) // 2]:.2f}, least {ranks[0]:.2f}, {len(ranks)} ops")


def ablation(models: Sequence[str], path: Path, count: int) -> None:
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
        measured = Kept(dispatch, Path(folder))
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


def _micro(nest: LoopNest, pool: list[Schedule], given: tuple[int, ...]) -> list[Schedule]:
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


def _zigzag(nest: LoopNest) -> list[Schedule]:
    try:
        from fewbit.tune.zigzag import zigzag_schedules
    except ImportError:
        return []
    return zigzag_schedules(nest, host())[:ABLATED]


def geomean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def table(database: Database, path: Path) -> None:
    results = [r for r in database.results("iree-cpu") if r.key.hardware == host().identity]
    by_kind: dict[str, list[float]] = {}
    for result in results:
        by_kind.setdefault(_kind(result.key), []).append(1 / result.ratio)
    counted = [gain for kind, gains in by_kind.items() if kind != SQUARES for gain in gains]
    print("| ops | number | geometric mean | least | most |\n|---|---|---|---|---|")
    for kind, values in (*sorted(by_kind.items()), (f"all but {SQUARES}", counted)):
        if values:
            figures = (geomean(values), min(values), max(values))
            print(
                "| " + " | ".join([kind, str(len(values)), *(f"{v:.2f}x" for v in figures)]) + " |"
            )
    if path.exists():
        _ablation_table([json.loads(line) for line in path.read_text().splitlines()])
    timed = FOLDER / "models.jsonl"
    if timed.exists():
        _models_table([json.loads(line) for line in timed.read_text().splitlines()])


def _ablation_table(entries: list[dict[str, float]]) -> None:
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


def _models_table(rows: list[dict[str, float]]) -> None:
    """The last row of each model counts."""
    print("\n| model | IREE's flags | tuned | gain | fewbit's flags | tuned | gain |")
    print("|---|---|---|---|---|---|---|")
    for row in {row["model"]: row for row in rows}.values():
        cells = [str(row["model"])]
        for kind in ("plain", "ours"):
            before, after = row.get(f"{kind} before"), row.get(f"{kind} after")
            cells += [_milliseconds(before), _milliseconds(after)]
            cells.append("" if before is None or after is None else f"{before / after:.2f}x")
        print("| " + " | ".join(cells) + " |")


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g} ms"


def _kind(key: Key) -> str:
    loops, *operands = key.signature.split(" {")[0].split()
    inputs = [operand for operand in operands if operand.startswith("i:")]
    if len(inputs) < 2:
        return SQUARES
    if any("+d" in operand for operand in inputs):
        return "depthwise convolutions" if _depthwise(operands) else "convolutions"
    return "matmuls" if loops.count("p") > 1 else "a matrix and a vector"


def _depthwise(operands: Sequence[str]) -> bool:
    indices = [part.partition("[")[2].rstrip("]") for part in operands]
    last = indices[-1].split(",")[-1]
    return all(last in part.replace("+", ",").split(",") for part in indices)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = ("prepare", "search", "models", "ablation", "rank", "table")
    parser.add_argument("what", choices=commands)
    parser.add_argument("models", nargs="*", default=["lenet"])
    parser.add_argument("--db", type=Path, default=Path("build/tuning.db"))
    parser.add_argument("--count", type=int, default=6, help="ops of a model that are ablated")
    parser.add_argument(
        "--only-prepared", action="store_true", help="stop where something must be compiled first"
    )
    given = parser.parse_args()
    database, path = Database(given.db), given.db.with_suffix(".jsonl")
    names = sorted(zoo()) if given.models == ["zoo"] else given.models
    Kept.only_prepared = given.only_prepared
    if given.what in ("prepare", "search"):
        search(names, database, prepare=given.what == "prepare")
    elif given.what == "models":
        models(names, database)
    elif given.what == "ablation":
        ablation(names, path, given.count)
    elif given.what == "rank":
        rank(names, given.count)
    if given.what in ("search", "ablation", "table"):
        table(database, path)


if __name__ == "__main__":
    main()
