"""What tests of the target share: networks, and agreement of QEMU's results with the interpreter's."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.passes.quant.integer_only import integer_only
from fewbit.program.program import Program
from fewbit.quant import calibrate
from fewbit.runtime import Artifact
from fewbit.targets.mcu.board import board_of
from fewbit.targets.mcu.core import CORES

ALL = tuple(CORES)
KINDS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc", "rv32imafc")
"""One core of each kind: of multiplications, of floats, of calls."""


def needs_emulator(core: str) -> None:
    emulator = board_of(CORES[core]).emulator
    if shutil.which(emulator) is None:
        pytest.skip(f"{emulator} is not installed")


@cache
def network(name: str) -> Program:
    return fold_batch_norm(fewbit.import_model(f"zoo:{name}"))


@cache
def quantized(name: str, recipe: str, integers: bool = False) -> Program:
    """Return a network of the zoo with few bits, calibrated where its scales are static."""
    program = network(name)
    calibration = None
    if "static" in recipe:
        data = [tuple(made_up_inputs(program, dynamic=4))]
        calibration = calibrate(program, data, recipe)
    found = fewbit.quantize(program, recipe, calibration)
    return integer_only(found, strict=True, fixed_point=True) if integers else found


def compile_for(program: Program, core: str, output: Path, **options: Any) -> Artifact:
    return fewbit.compile(program, f"mcu:{core}", output, name="net", **options)


def check(program: Program, core: str, output: Path, seed: int = 0) -> Artifact:
    """Compile and run a program, and compare with the interpreter to the bit."""
    needs_emulator(core)
    artifact = compile_for(program, core, output)
    random = np.random.default_rng(seed)
    inputs = [
        random.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
        for x in made_up_inputs(program, dynamic=1)
    ]
    expected, given = program.run(*inputs), artifact.run(*inputs)
    for a, b in zip(expected, given, strict=True):
        assert np.array_equal(a, b), f"largest difference {np.abs(a - b).max()}"
    stats = artifact.runner.plain_stats()
    assert stats["stack_used"] <= stats["stack_bytes"]
    return artifact
