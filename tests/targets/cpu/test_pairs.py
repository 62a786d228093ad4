"""Every pair of widths, from a program's text to code: the interpreter's integers everywhere.

One program has a linear layer and a convolution for each pair, on integers, and gives their sums.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.program.program import Program
from fewbit.toolchain.isa import names
from tests.targets.cpu.programs import Array
from tests.targets.cpu.test_processors import RUNNABLE, outputs

TERNARY = "!mico.ternary"
TYPES = (TERNARY, *(f"!mico.int<{bits}>" for bits in range(1, 9)))
ROWS, DEPTH, WIDTH = 5, 71, 19
IMAGE, KERNEL, OUT = (1, 40, 4, 3), (7, 40, 3, 2), (1, 7, 4, 2)


def numbers(kind: str, shape: tuple[int, ...], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == TERNARY:
        return rng.integers(-1, 2, shape).astype(np.int8)
    bits = int(kind[-2])
    most = 1 << bits >> 1
    some = rng.choice([-1, 1], shape) if bits == 1 else rng.integers(-most, most, shape)
    return some.astype(np.int8)


def tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{kind}>"


@cache
def program(inputs: tuple[str, ...], weights: tuple[str, ...]) -> Program:
    """A matrix and an image of each width, times weights of each."""
    sums, pixels = tensor((ROWS, WIDTH), "i32"), tensor(OUT, "i32")
    head = ["mico.constant @one : tensor<f32> = dense<1.0>"]
    for j, w in enumerate(weights):
        for name, shape in (("m", (WIDTH, DEPTH)), ("k", KERNEL)):
            values = numbers(w, shape, j).tolist()
            head.append(
                f"mico.constant @{name}{j} : {tensor(shape, w)} = dense<{values}> scale @one"
            )
    parameters, body, results = list[str](), list[str](), list[str]()
    for i, x in enumerate(inputs):
        matrix, image = tensor((ROWS, DEPTH), x), tensor(IMAGE, x)
        parameters += [f"%x{i}: {matrix}", f"%p{i}: {image}"]
        for j in range(len(weights)):
            y, z = f"%y{i}_{j}", f"%z{i}_{j}"
            body.append(f"{y} = mico.bitlinear(%x{i}, @m{j}) : ({matrix}) -> {sums}")
            body.append(
                f"{z} = mico.bitconv2d(%p{i}, @k{j}) {{padding = [1, 0]}} : ({image}) -> {pixels}"
            )
            results += [y, z]
    types = ", ".join([sums, pixels] * (len(results) // 2))
    lines = "\n  ".join([*body, f"func.return {', '.join(results)} : {types}"])
    main = f"func.func @main({', '.join(parameters)}) -> ({types}) {{\n  {lines}\n}}"
    return Program.parse("\n".join([*head, main]))


def check(processor: str, widths: tuple[str, ...], weights: tuple[str, ...], folder: Path) -> None:
    tried = program(widths, weights)
    given = [
        numbers(x, shape, seed) for seed, x in enumerate(widths) for shape in ((ROWS, DEPTH), IMAGE)
    ]
    artifact = fewbit.compile(tried, f"cpu:{processor}", folder / "net", name="net")
    result = outputs(artifact, folder, tried, *given, threads=2)
    for got, wanted in zip(result, tried.run(*given), strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("processor", ["aarch64-dotprod", "riscv64", RUNNABLE[-1]])
def test_few_pairs(tmp_path: Path, processor: str) -> None:
    check(processor, ("!mico.int<1>",), ("!mico.int<1>", TERNARY), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("processor", names())
def test_every_pair(tmp_path: Path, processor: str) -> None:
    check(processor, TYPES, TYPES, tmp_path)
