"""Triton's kernels: numbers by its interpreter on the CPU, machine code for each generation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fewbit.kernels.cuda.arch import AMPERE, HOPPER, TURING, Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_triton import ATTENTION_TRITON
from fewbit.kernels.cuda.conv2d_triton import TRITON
from fewbit.kernels.cuda.convolution import Convolution
from tests.kernels.cuda.compiling import needs_triton

INTERPRETED = Path(__file__).with_name("interpret_triton.py")


@needs_triton
def test_numbers_are_those_of_float64() -> None:
    """In a process of its own: Triton reads the variable when it is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(INTERPRETED)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_triton
@pytest.mark.parametrize("arch", [AMPERE, HOPPER], ids=lambda arch: arch.name)
def test_convolutions_compile(arch: Arch) -> None:
    problem = Convolution.parse("n1,9x9,64,32,k3")
    configs = TRITON.configs(problem, arch)
    split = next(config for config in configs if config["split"] > 1)
    plan = TRITON.plan(problem, arch, split)
    assert [launch.symbol for launch in plan.launches] == ["conv2d", "add_parts"]
    assert plan.buffers["parts"].role == "work"
    assert all(image.startswith(b"\x7fELF") for image in plan.images)


@needs_triton
def test_attention_compiles() -> None:
    problem = Attention(1, 2, 64, 64, 64)
    (launch,) = ATTENTION_TRITON.plan(
        problem, AMPERE, ATTENTION_TRITON.configs(problem, AMPERE)[3]
    ).launches
    assert launch.grid == (1, 2, 1)
    assert launch.block == 128


def test_turing_is_refused() -> None:
    assert "Ampere" in (TRITON.refuse(Convolution.parse("n1,9x9,64,32,k3"), TURING) or "")
    assert "Ampere" in (ATTENTION_TRITON.refuse(Attention(1, 1, 8, 8, 64), TURING) or "")
