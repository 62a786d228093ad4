"""What tests of the target share: programs compiled, run in node, and compared to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.errors import MissingToolError
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.wasm.engine import ENGINES, engine_of
from fewbit.targets.wasm.run_in_node import find_node

ALL = tuple(engine.name for engine in ENGINES.values())


def needs_node(target: str = "wasm") -> str:
    """Return the path of a node that runs a target's programs; skip without one."""
    try:
        return find_node(engine_of(target))
    except MissingToolError as e:
        pytest.skip(e.what)


def compile_for(program: Program, target: str, output: Path, **options: Any) -> Artifact:
    return fewbit.compile(program, target, output, name="net", **options)


def check(program: Program, target: str, output: Path, seed: int = 0) -> Artifact:
    """Compile and run a program, and compare with the interpreter to the bit."""
    needs_node(target)
    artifact = compile_for(program, target, output)
    for each in range(2):  # the second run finds what the first left in memory
        random = np.random.default_rng(seed + each)
        inputs = [
            random.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
            for x in made_up_inputs(program, dynamic=1)
        ]
        expected, given = program.run(*inputs), artifact.run(*inputs)
        for a, b in zip(expected, given, strict=True):
            assert np.array_equal(a, b, equal_nan=True), f"largest difference {np.abs(a - b).max()}"
    return artifact
