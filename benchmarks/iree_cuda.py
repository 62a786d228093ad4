"""Modules for CUDA, compiled beforehand on any machine, and run and compared on one with a GPU.

    python benchmarks/iree_cuda.py compile FOLDER [--target iree-cuda:sm_90]
    python benchmarks/iree_cuda.py run FOLDER [--device cuda]

`compile` writes for each case an artifact, its inputs and what the interpreter gives for them;
`run` needs IREE's runtime, xdsl, pydantic and numpy, no compiler. It prints how far the numbers
are apart and the time of a call, and ends with status 1 if one case is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import fewbit

CASES = [
    ("mlp", None), ("mlp", "w8a8"), ("mlp", "w4a8"), ("mlp", "w3a8"),
    ("lenet", None), ("lenet", "w8a8"), ("lenet", "w1.58a8"), ("lenet", "w5a8"),
    ("resnet8", None), ("resnet8", "w4a8"), ("ds-cnn", "w8a8"), ("llama-tiny", "w4a8"),
]  # fmt: skip
CLOSE = 1e-3
"""Relative to the largest output: one integer more or less in a layer behind a float op."""
CALLS = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["compile", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="iree-cuda:sm_90")
    parser.add_argument("--device")
    options = parser.parse_args()
    if options.task == "compile":
        for name, recipe in CASES:
            _compile(name, recipe, options.folder / f"{name}-{recipe or 'float'}", options.target)
        return 0
    wrong = [case for case in sorted(options.folder.iterdir()) if not _run(case, options.device)]
    print(f"{len(wrong)} wrong" if wrong else "all right")
    return 1 if wrong else 0


def _compile(name: str, recipe: str | None, folder: Path, target: str) -> None:
    from fewbit.cost.layers import made_up_inputs
    from fewbit.passes.graph.fold_batch_norm import fold_batch_norm

    program = fold_batch_norm(fewbit.import_model(f"zoo:{name}"))
    if recipe is not None:
        program = fewbit.quantize(program, recipe)
    inputs = made_up_inputs(program)
    folder.mkdir(parents=True, exist_ok=True)
    fewbit.compile(program, target, folder / "artifact", name="net")
    arrays: dict[str, Any] = {f"x{i}": array for i, array in enumerate(inputs)}
    np.savez(folder / "numbers.npz", y=program.run(*inputs)[0], **arrays)
    print(f"{folder.name}: compiled", flush=True)


def _run(case: Path, device: str | None) -> bool:
    numbers = np.load(case / "numbers.npz")
    inputs = [numbers[name] for name in numbers.files if name != "y"]
    call = fewbit.load(case / "artifact").runner.prepare(*inputs, device=device)
    found, expected = call()[0], numbers["y"]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    seconds = min(_timed(call.run) for _ in range(CALLS))
    print(f"{case.name}: error {error:.1e}, {seconds * 1e6:.0f} us a call", flush=True)
    return error < CLOSE


def _timed(run: Any) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
