"""Compile LeNet to a native library, load it again, and compare it with PyTorch.

python examples/compile_lenet.py [FOLDER]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import torch

import fewbit
from fewbit.models.registry import create


def least_milliseconds(function: Callable[[Any], Any], x: Any, rounds: int = 200) -> float:
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main(folder: str) -> None:
    torch.set_num_threads(1)
    model = create("lenet")
    x = torch.randn(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    program = fewbit.import_model(model, (x,))
    with torch.no_grad():
        expected = model(x)
        print(f"torch  {least_milliseconds(model, x):8.3f} ms")
    for recipe in (None, "w8a8", "w4a8"):
        quantized = program if recipe is None else fewbit.quantize(program, recipe)
        name = recipe or "float"
        fewbit.compile(quantized, "cpu", f"{folder}/{name}", name="lenet")
        art = fewbit.load(f"{folder}/{name}")
        error = abs(art(x.numpy()) - expected.numpy()).max() / abs(expected).max().item()
        print(
            f"{name:6} {least_milliseconds(art, x.numpy()):8.3f} ms"
            f"  {art.manifest.weight_bytes:7,} bytes of weights"
            f"  {art.manifest.arena_bytes:6,} bytes of arena"
            f"  largest error {error:.1e}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with TemporaryDirectory() as temporary:
            main(temporary)
