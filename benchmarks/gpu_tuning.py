# pyright: basic
"""ResNet-18 tuned for a GPU: the section "Tuned" of gpu.md, in steps that may be on two machines.

python benchmarks/gpu_tuning.py prepare FOLDER [CASE...]   compile candidates; needs no GPU
python benchmarks/gpu_tuning.py measure FOLDER [CASE...]   time them; needs the GPU's driver
python benchmarks/gpu_tuning.py record FOLDER              into FOLDER/tuning.db
python benchmarks/gpu_tuning.py compile FOLDER [CASE...]   the models, without and with all that
python benchmarks/gpu_tuning.py run FOLDER [CASE...]       the models; needs IREE's runtime
python benchmarks/gpu_tuning.py table FOLDER               all of it, as Markdown

`prepare` uses all processors.
Preparing again, after `record`, compiles what is like the fastest so far.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

CASES = {
    "iree-f32-32": ("iree-cuda:sm_90", "f32", 32),
    "iree-f16-32": ("iree-cuda:sm_90", "f16", 32),
    "iree-f16-1": ("iree-cuda:sm_90", "f16", 1),
    "iree-f32-1": ("iree-cuda:sm_90", "f32", 1),
    "cuda-f32-32": ("cuda:sm_90", "f32", 32),
    "cuda-f32-1": ("cuda:sm_90", "f32", 1),
    "cuda-f16-32": ("cuda:sm_90", "f16", 32),
    "cuda-f16-1": ("cuda:sm_90", "f16", 1),
}
SIDE = 224
FIRST, AROUND = 24, 16
WAYS = ("before", "after")


def program_of(case: str):
    """Return the model; for IREE it is converted to f16 itself, for cuda that is an option."""
    import torch

    import fewbit
    from fewbit.models import create

    target, precision, batch = CASES[case]
    model, x = create("resnet18"), torch.zeros(batch, 3, SIDE, SIDE)
    if target.startswith("iree") and precision == "f16":
        model, x = model.half(), x.half()
    options: dict[str, Any] = {} if target.startswith("iree") else {"precision": precision}
    return fewbit.import_model(model, example_inputs=(x,)), target, options


def inputs_of(case: str) -> np.ndarray:
    target, precision, batch = CASES[case]
    x = np.random.default_rng(0).standard_normal((batch, 3, SIDE, SIDE), np.float32)
    return x.astype(np.float16) if target.startswith("iree") and precision == "f16" else x


def ops_of(case: str) -> list:
    from fewbit.kernels.cuda.arch import HOPPER
    from fewbit.tune.cuda.layers import layers_of
    from fewbit.tune.iree.gpu_tuning import gpu_dispatches
    from fewbit.tune.iree.tuner import build_for
    from fewbit.tune.iree.tuning import calls_of

    program, _, options = program_of(case)
    if case.startswith("cuda"):
        return layers_of(program, HOPPER, **options)[0]
    made = build_for(program, HOPPER)
    calls, ops = calls_of(made), {}
    for dispatch in gpu_dispatches(made):
        if dispatch.name in calls and dispatch.reason is None:
            name, text, count = ops.get(dispatch.signature, (dispatch.name, dispatch.text, 0))
            ops[dispatch.signature] = (name, text, count + calls[dispatch.name])
    return list(ops.values())


def prepare(folder: Path, case: str) -> None:
    from fewbit.tune.prepared import Prepared, write_prepared

    start = perf_counter()
    listed = ops_of(case)
    print(f"{case}: {len(listed)} ops", flush=True)
    with get_context("spawn").Pool(min(len(listed), os.cpu_count() or 1)) as pool:
        found = pool.map(_prepare_op, [(folder, each) for each in listed], chunksize=1)
    ops = {op.key: op for op in found if op is not None}
    write_prepared(folder / case, Prepared(CASES[case][0], "sm_90", case, tuple(ops.values())))
    count = sum(len(op.candidates) - 1 for op in ops.values())
    failed = sum(len(op.failed) for op in ops.values())
    print(
        f"{case}: {count} candidates, {failed} failed, {perf_counter() - start:.0f} s", flush=True
    )


def _prepare_op(given):
    from fewbit.kernels.cuda.arch import HOPPER
    from fewbit.tune.cuda.search import prepare_op
    from fewbit.tune.database import Database
    from fewbit.tune.iree.gpu_dispatch import GpuDispatch
    from fewbit.tune.iree.gpu_tuning import space_of

    folder, listed = given
    if isinstance(listed, tuple):
        name, text, calls = listed
        space = space_of(GpuDispatch(text, name), HOPPER, calls)
    else:
        space = listed.space()
    if isinstance(space, str):
        return None
    known = Database(folder / "tuning.db").trials(space.key)
    return prepare_op(space, known, 1, AROUND if known else FIRST)


def measure(folder: Path, case: str) -> None:
    from fewbit.tune.cuda.measure import measure

    start = perf_counter()
    measure(folder / case)
    print(f"{case}: measured in {perf_counter() - start:.0f} s", flush=True)


def record(folder: Path, case: str) -> None:
    from fewbit.tune.cuda.program import report_of
    from fewbit.tune.cuda.search import record
    from fewbit.tune.database import Database

    if (folder / case / "measured.jsonl").is_file():
        report = report_of(case, record(folder / case, Database(folder / "tuning.db")))
        rows = [
            {
                "name": row.name,
                "calls": row.calls,
                "us": None if row.seconds is None else row.seconds * 1e6,
                "ratio": row.result.ratio if row.result else None,
                "noise": row.result.noise if row.result else None,
                "trials": row.result.trials if row.result else 0,
                "how": str(row.result.schedule) if row.result and row.result.schedule else "",
                "reason": row.reason,
            }
            for row in report.rows
        ]
        (folder / f"{case}.json").write_text(json.dumps(rows, indent=1))
        print(f"{case}: {report.before * 1e6:.0f} us, {report.after * 1e6:.0f} us with it")


def compile(folder: Path, case: str) -> None:
    import fewbit

    program, target, options = program_of(case)
    for way in WAYS:
        db = "none" if way == "before" else str(folder / "tuning.db")
        fewbit.compile(program, target, folder / case / way, tuning_db=db, name="m", **options)
    print(f"{case}: compiled", flush=True)


def run(folder: Path, case: str) -> None:
    """Both ways by turns; medians of calls whose input is on the GPU."""
    import fewbit

    x = inputs_of(case)
    calls = {way: _call(fewbit.load(folder / case / way).runner, x) for way in WAYS}
    outputs = {way: np.asarray(call()[0], np.float64) for way, call in calls.items()}
    off = np.abs(outputs["after"] - outputs["before"]).max() / np.abs(outputs["before"]).max()
    times = {way: [] for way in WAYS}
    for _ in range(40):
        for way, call in calls.items():
            start = perf_counter()
            call()
            times[way].append((perf_counter() - start) * 1e6)
    values = {"off": float(off), **{way: median(each) for way, each in times.items()}}
    (folder / f"{case}.model.json").write_text(json.dumps(values))
    print(case, values, flush=True)


def _call(runner, x: np.ndarray):
    if hasattr(runner, "prepare"):
        return runner.prepare(x)
    runner.place(x)

    def call():
        runner.run()
        return runner.outputs()

    return call


def table(folder: Path, case: str) -> None:
    path = folder / f"{case}.json"
    if not path.is_file():
        return
    rows = [row for row in json.loads(path.read_text()) if row["us"] is not None]
    print(f"\n{case}\n\n| op | calls | before, us | after, us | gain | how |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['name']} | {row['calls']} | {row['us']:.1f} | {row['us'] * row['ratio']:.1f} "
            f"| {1 / row['ratio']:.2f} | {row['how']} |"
        )
    model = folder / f"{case}.model.json"
    if model.is_file():
        data = json.loads(model.read_text())
        gain = data["before"] / data["after"]
        print(f"| the model | | {data['before']:.0f} | {data['after']:.0f} | {gain:.2f} | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = {f.__name__: f for f in (prepare, measure, record, compile, run, table)}
    parser.add_argument("step", choices=steps)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for case in given.cases or CASES:
        steps[given.step](given.folder, case)


if __name__ == "__main__":
    main()
