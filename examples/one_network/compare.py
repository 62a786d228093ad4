# pyright: basic
"""One network in several frameworks: the same recipe gives the same integers.

    python compare.py [--recipe w4a8] [torch jax keras onnx]

Each is imported, its batch norm folded, and quantized. Then the packed weights and their scales are
compared byte by byte, and so is what the programs compute.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from weights import make_weights

import fewbit
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm

FRAMEWORKS = ("torch", "jax", "keras", "onnx")
NCHW = ("torch", "onnx")
"""Those whose images have channels second."""


def imported(framework: str) -> fewbit.Program:
    weights = make_weights()
    shape = (1, 3, 16, 16) if framework in NCHW else (1, 16, 16, 3)
    if framework == "torch":
        from in_torch import network as torch_network

        return fewbit.import_model(torch_network(weights), input_shapes=[shape])
    if framework == "jax":
        from in_jax import network as jax_network

        from fewbit.frontends.jax import import_jax

        return import_jax(jax_network, (np.zeros(shape, np.float32),), parameters=weights)
    if framework == "keras":
        from in_keras import network as keras_network

        return fewbit.import_model(keras_network(weights))
    return exported_to_onnx(shape)


def exported_to_onnx(shape: tuple[int, ...]) -> fewbit.Program:
    """Export it as training has left it: exporters that fold batch norms round differently."""
    import torch
    from in_torch import network as torch_network

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "network.onnx"
        model = torch_network(make_weights())
        kept = torch.onnx.TrainingMode.PRESERVE
        given = (torch.zeros(shape),)
        torch.onnx.export(model, given, str(path), dynamo=False, training=kept)
        return fewbit.import_model(path)


def quantized(framework: str, recipe: str) -> fewbit.Program:
    return fewbit.quantize(fold_batch_norm(imported(framework)), recipe)


def stored_bytes(program: fewbit.Program) -> dict[str, bytes]:
    """Packed weights, scales and biases, by name."""
    return {name: program.store[name].tobytes() for name in sorted(program.store)}


def output(program: fewbit.Program, framework: str, image: np.ndarray) -> np.ndarray:
    given = image.transpose(0, 3, 1, 2) if framework in NCHW else image
    return program.run(np.ascontiguousarray(given))[0]


def installed() -> list[str]:
    needs = {"torch": ["torch"], "jax": ["jax"], "keras": ["keras", "jax"], "onnx": ["onnx"]}
    return [name for name in FRAMEWORKS if all(find_spec(each) for each in needs[name])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", default=installed())
    parser.add_argument("--recipe", default="w4a8")
    given = parser.parse_args()
    if unknown := set(given.frameworks) - set(FRAMEWORKS):
        parser.error(f"{', '.join(unknown)}: frameworks are {', '.join(FRAMEWORKS)}")
    image = np.random.default_rng(1).standard_normal((1, 16, 16, 3)).astype(np.float32)
    first: dict[str, bytes] | None = None
    expected = np.zeros(0)
    for framework in given.frameworks:
        program = quantized(framework, given.recipe)
        tensors, result = stored_bytes(program), output(program, framework, image)
        if first is None:
            first, expected = tensors, result
        size = sum(map(len, tensors.values()))
        same = "the same" if tensors == first else "OTHER"
        equal = "the same" if np.array_equal(result, expected) else "OTHER"
        print(f"{framework:6} {len(tensors)} tensors, {size} bytes: {same}; its output: {equal}")
        if tensors != first or not np.array_equal(result, expected):
            raise SystemExit(f"{framework} differs from {given.frameworks[0]}")


if __name__ == "__main__":
    main()
