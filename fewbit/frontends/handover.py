"""What a worker process hands over: a StableHLO module, and which of its arguments are weights.

A framework that is too large to load here, or belongs to another Python, exports its model in a
process of its own. The folder holds `module.mlir`, `arguments.json` and `weights.npz`, which has
the data of weights by their position; nothing in it is unpickled.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.base.start import SAFE
from fewbit.errors import Place, UnsupportedError
from fewbit.frontends.open_sizes import Sizes, warn_of_open

if TYPE_CHECKING:
    from fewbit.program.program import Program

SHOWN = 4
"""Lines of a worker's last words."""
TRACEBACK = "Traceback (most recent call last):"
MODULE, ARGUMENTS, WEIGHTS = "module.mlir", "arguments.json", "weights.npz"


def write_handover(
    folder: Path,
    text: bytes,
    weights: Mapping[int, tuple[str, Any]],
    inputs: Sequence[str],
    declared: Mapping[str, Sizes] | None = None,
) -> None:
    """`declared` are the shapes that the model itself gives its inputs, where they were taken."""
    names = {str(position): name for position, (name, _) in weights.items()}
    (folder / MODULE).write_bytes(text)
    described = {"weights": names, "inputs": list(inputs), "declared": dict(declared or {})}
    (folder / ARGUMENTS).write_text(json.dumps(described))
    arrays = {str(position): np.asarray(data) for position, (_, data) in weights.items()}
    np.savez(folder / WEIGHTS, allow_pickle=False, **arrays)


def import_handover(folder: Path, name: str) -> Program:
    from fewbit.frontends.stablehlo import import_stablehlo

    arguments = json.loads((folder / ARGUMENTS).read_text())
    with np.load(folder / WEIGHTS, allow_pickle=False) as arrays:
        weights = {
            int(position): (str(called), arrays[position])
            for position, called in arguments["weights"].items()
        }
    warn_of_open(arguments["declared"])
    text = (folder / MODULE).read_bytes()
    return import_stablehlo(text, weights, name=name, input_names=arguments["inputs"])


def run_worker(
    command: Sequence[str],
    model: Path,
    folder: Path,
    input_shapes: Sequence[Sequence[int]] | None,
    environment: Mapping[str, str],
    *more: str,
) -> None:
    """Run a worker to its end; what it says last is the error where it fails."""
    shapes = None if input_shapes is None else [_shape_text(shape) for shape in input_shapes]
    done = subprocess.run(
        [*command, str(model), str(folder), json.dumps(shapes), *more],
        capture_output=True,
        text=True,
        env={**os.environ, **SAFE, **environment},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == 0:
        return
    lines = _last_words(done.stderr)
    raise UnsupportedError(
        f"the model is not exported: {lines[-1].strip() if lines else 'no message'}",
        place=Place(file=str(model)),
        excerpt="\n".join(f"  {line}" for line in lines[-SHOWN:-1]) or None,
    )


def _last_words(text: str) -> list[str]:
    """Return what a worker wrote; of an exception, its message without the traceback."""
    lines = [line for line in text.splitlines() if line.strip()]
    if TRACEBACK not in lines:
        return lines
    last = len(lines) - lines[::-1].index(TRACEBACK)
    return list(dropwhile(lambda line: line[0].isspace(), lines[last:]))


def _shape_text(shape: Sequence[int] | str) -> str:
    if isinstance(shape, str):
        return shape
    dtype = getattr(shape, "dtype", "f32")
    return "x".join(map(str, shape)) + f":{dtype}"
