"""Models of the zoo compiled for IREE, beside fewbit's own code, onnxruntime and PyTorch.

    python benchmarks/iree_models.py prepare FOLDER [--recipe w8a8] [NAME ...]
    python benchmarks/iree_models.py run FOLDER [--seconds S] [NAME ...]

`prepare` compiles; it takes minutes, and may be disturbed. `run` prints the table: the minimum
processor time of a run at batch 1 on one thread, and in brackets how many times as fast as
onnxruntime in float32 that is. Where IREE has less than half of onnxruntime's
speed, a line below the table says where its time may go: the dispatches with most of the work.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fewbit.bench.case import Case
from fewbit.bench.peers import find_tool
from fewbit.bench.subject import OUR_SAMPLES, find_subject
from fewbit.bench.timing import time_together
from fewbit.cli.calibration import CalibrationOptions
from fewbit.models.registry import zoo
from fewbit.program.artifact import open_folder
from fewbit.program.tensor_file import Array
from fewbit.runtime import Artifact, load
from fewbit.runtime.native import dtype_of
from fewbit.targets.compile import compile
from fewbit.targets.iree.dispatches import dispatches_of

PEERS = ("onnxruntime", "torch")
WAYS = {"cpu": ("cpu", False), "iree": ("iree-cpu", False), "kernels": ("iree-cpu", True)}
"""What we compile: a target, and whether kernels of ours are in IREE's module."""
TITLES = {"cpu": "cpu", "iree": "iree-cpu", "kernels": "iree-cpu --kernels"}
SLOW = 0.5
"""A share of onnxruntime's speed; below it, the table gives a reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["prepare", "run", "time"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--recipe", "-r", default="w8a8")
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_intermixed_args()
    if options.task == "time":
        print(json.dumps(_least(options.folder, options.models, options.seconds)))
        return
    names: list[str] = options.models or list(zoo())
    if options.task == "prepare":
        for name in names:
            _prepare(name, options.folder / name, options.recipe)
        return
    ready = [name for name in names if (options.folder / name / "ready").exists()]
    _print_table(options.folder, ready, options.seconds)


def _prepare(name: str, folder: Path, recipe: str) -> None:
    if (folder / "ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    subject = find_subject(f"zoo:{name}")
    samples = subject.random_samples(OUR_SAMPLES)
    case = Case(folder=folder, model=subject.name, quantized=False)
    case.save(subject.module, subject.inputs, samples)
    for kind in ("float32", recipe):
        given = None if kind == "float32" else kind
        program = CalibrationOptions().quantize(subject.program, given, samples)
        for way, (target, kernels) in WAYS.items():
            compile(program, target, folder / f"{kind}-{way}", name="net", kernels=kernels)
    for peer in map(find_tool, PEERS):
        for variant in peer.variants(False):
            peer.build(case, variant, case.place(variant))
    (folder / "ready").write_text(recipe)
    print(f"{name}: prepared", flush=True)


def _print_table(folder: Path, names: list[str], seconds: float) -> None:
    reasons: list[str] = []
    for number, name in enumerate(names):
        recipe = (folder / name / "ready").read_text()
        ways = {f"{kind}-{way}": way for kind in ("float32", recipe) for way in WAYS}
        if number == 0:
            titles = [f"{TITLES[way]}, {kind.partition('-')[0]}" for kind, way in ways.items()]
            print(f"| | {' | '.join([*PEERS, *titles])} |\n|{'---|' * (len(ways) + 3)}")
        times = _times(folder / name, list(ways), seconds)
        base = times[PEERS[0]]
        cells = [f"{_show(time)} ({base / time:.2f})" for time in times.values()]
        print(f"| {name} | {' | '.join([_show(base), *cells[1:]])} |", flush=True)
        reasons += [
            f"- {name}, {kind}: {_heaviest(folder / name / kind)}"
            for kind, way in ways.items()
            if way != "cpu" and base / times[kind] < SLOW
        ]
    print("\n" + "\n".join(reasons))


def _times(folder: Path, kinds: list[str], seconds: float) -> dict[str, float]:
    """Each peer in a process of its own: threads that it leaves behind disturb others."""
    times: dict[str, float] = {}
    for tools in (*([name] for name in PEERS), kinds):
        command = [sys.executable, __file__, "time", str(folder), *tools]
        command += ["--seconds", str(seconds * len(tools))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times |= json.loads(done.stdout)
    return times


def _least(folder: Path, tools: list[str], seconds: float) -> dict[str, float]:
    case = Case.load(folder).model_copy(update={"folder": folder})
    calls: dict[str, Callable[[], object]] = {}
    kept: list[object] = []
    for tool in tools:
        if tool in PEERS:
            peer = find_tool(tool)
            (variant,) = peer.variants(False)
            calls[tool] = peer.open(case, variant, case.place(variant), 1).run
        else:
            art = load(folder / tool)
            prepared = art.runner.prepare(*case.inputs, *_state(art, len(case.inputs)), threads=1)
            kept.append(prepared)
            calls[tool] = prepared.run
    found = time_together(calls, seconds=seconds)
    return {name: time.least for name, time in found.items()}


def _state(art: Artifact, given: int) -> list[Array]:
    """Caches at their start: `cpu` keeps them itself, IREE takes and gives them in each call."""
    if art.manifest.target == "cpu":
        return []
    rest = art.manifest.inputs[given:]
    return [np.zeros([size or 1 for size in port.shape], dtype_of(port)) for port in rest]


def _show(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def _heaviest(folder: Path) -> str:
    runs = [each for each in dispatches_of(open_folder(folder)) if not each.at_load]
    heavy = sorted(runs, key=lambda each: -each.macs)[:2]
    named = ", ".join(f"{each.layer} {each.macs:,} MACs" for each in heavy)
    return f"{len(runs)} dispatches; {named}"


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
