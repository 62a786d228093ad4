"""Our kernels beside a BLAS library: `python benchmarks/blas.py [--blas openblas]`.

A GEMM of 512 x 512 matrices, a GEMV, and ResNet-8, compiled once with each. One
thread. Times are the minimum of the process's CPU time over interleaved rounds, so other work on
the machine disturbs ratios little.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fewbit
from fewbit.frontends import import_model
from fewbit.program.program import Program


def matmul(m: int, k: int, n: int) -> Program:
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    return Program.parse(f"""
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  func.return %r : {c}
}}""")


PROGRAMS = {
    "matmul 512": lambda: matmul(512, 512, 512),
    "1 x 512 times 512 x 512": lambda: matmul(1, 512, 512),
    "resnet8": lambda: import_model("zoo:resnet8"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blas", default="scipy-openblas32")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    print(f"{'':28}{'ours, us':>12}{options.blas + ', us':>22}{'ratio':>8}")
    for name, make in PROGRAMS.items():
        ours, theirs = compare(make(), options.blas, options.rounds)
        print(f"{name:28}{ours:12.0f}{theirs:22.0f}{theirs / ours:8.2f}")


def compare(program: Program, blas: str, rounds: int) -> list[float]:
    """Microseconds of a call with our kernels, and with the library."""
    random = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        made = [
            fewbit.compile(program, "cpu", Path(folder) / str(i), name="net", blas=library)
            for i, library in enumerate([None, blas])
        ]
        shapes = [[1 if s is None else s for s in t.shape] for t in made[0].manifest.inputs]
        arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
        best = [float("inf")] * len(made)
        results = [each.run(*arrays)[0] for each in made]
        np.testing.assert_allclose(results[1], results[0], rtol=1e-3, atol=1e-3)
        for _ in range(rounds):
            for i, each in enumerate(made):
                start = time.process_time()
                for _ in range(REPEATS):
                    each.run(*arrays)
                best[i] = min(best[i], (time.process_time() - start) / REPEATS)
    return [seconds * 1e6 for seconds in best]


REPEATS = 10

if __name__ == "__main__":
    main()
