"""Random graphs, compiled and compared: what is wrong, or fails inside, is reduced and reported.

    python tools/fuzz.py --count 1000 --seed 0 --kinds onnx,torch --targets cpu,iree-cpu

Each seed is a graph of `tests/fuzz`. What is refused is counted by its reason; everything else that
fails is written to `--out` as a model, and beside it its smallest part that fails. The exit status
is 1 if there is such a one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fewbit.frontends.onnx.load import load_model

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from fewbit.errors import UsageError
from fewbit.reduce import Case, Failure, reduce_model
from fewbit.reduce.check import Checker
from tests.fuzz.onnx_models import random_onnx
from tests.fuzz.torch_graphs import NotExportedError, export_random


def write_onnx(seed: int, folder: Path) -> Path:
    path = folder / f"onnx{seed}.onnx"
    path.write_bytes(random_onnx(seed).SerializeToString())
    return path


def write_torch(seed: int, folder: Path) -> Path:
    path = folder / f"torch{seed}.pt2"
    torch.export.save(export_random(seed), path)
    return path


WRITERS: dict[str, Callable[[int, Path], Path]] = {"onnx": write_onnx, "torch": write_torch}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000, help="Seeds of each kind.")
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86400 * 100_000)
    parser.add_argument("--kinds", default="onnx,torch")
    parser.add_argument("--targets", default="cpu,iree-cpu")
    parser.add_argument("--recipe", default=None)
    parser.add_argument("--no-reduce", action="store_true", help="Only report what fails.")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    refused, bad = Counter[str](), list[str]()
    tries = 0
    with Checker() as check:
        for seed in range(given.seed, given.seed + given.count):
            for kind in given.kinds.split(","):
                try:
                    path = WRITERS[kind](seed, given.out)
                except NotExportedError as e:
                    refused[f"{kind}: {e}"] += 1
                    continue
                failed = False
                for target in given.targets.split(","):
                    tries += 1
                    case = Case(target, given.recipe)
                    failure = check(path, case)
                    if failure is None:
                        continue
                    if failure.kind == "refused":
                        refused[f"{kind}, {target}: {failure.what.splitlines()[0]}"] += 1
                        continue
                    failed = True
                    bad.append(f"{kind} {seed} on {target}: {failure}")
                    print(bad[-1].splitlines()[0], flush=True)
                    if not given.no_reduce:
                        _reduce(path, case, failure)
                if not failed:
                    path.unlink()
    print(f"{tries} tries from seed {given.seed}: {len(bad)} bad, {refused.total()} refused")
    for reason, count in refused.most_common():
        print(f"{count:6} {reason}")
    return 1 if bad else 0


def _reduce(path: Path, case: Case, failure: Failure) -> None:
    if failure.kind == "timeout":
        return
    try:
        found = reduce_model(
            path, path.with_suffix(f".reduced{path.suffix.replace('.pt2', '')}"), case
        )
    except UsageError as e:
        print(f"  not reduced: {e.what}", flush=True)
        return
    print(f"  smallest part, of {found.after} ops: {_ops_of(found.path)} {found.path}", flush=True)


def _ops_of(path: Path) -> str:
    """Return the ops of an ONNX model by name; a program prints itself."""
    if path.suffix != ".onnx":
        return ""
    return ", ".join(node.op_type for node in load_model(path).graph.node)


if __name__ == "__main__":
    sys.exit(main())
