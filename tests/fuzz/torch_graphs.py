"""Random PyTorch modules: a seed is a module and its inputs.

A module is a list of steps, each a function or a layer of earlier values. Steps are tried on the
inputs while the module grows, and those that PyTorch refuses are left out, so that kinds need not
compute shapes or types. Some modules are exported with sizes that are left open, where the exporter
finds that they may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from fewbit.base.typed_torch import from_numpy, manual_seed
from tests.fuzz.torch_functions import BINARY, UNARY, Function, movements, selections
from tests.fuzz.torch_layers import layers

MOST = 4096
SIZES = (1, 2, 3, 4, 5, 7, 8)
TYPES = (torch.float32, torch.int64, torch.int32, torch.bool)


@dataclass(frozen=True)
class Step:
    """A function, or the layer of a name, of earlier values."""

    function: Function | str
    arguments: tuple[int, ...]


class RandomModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.layers = nn.ModuleDict()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values, read = [*inputs], set[int]()
        for step in self.steps:
            values.append(self.apply_step(step, values))
            read.update(step.arguments)
        ends = tuple(v for i, v in enumerate(values) if i not in read and i >= len(inputs))
        return ends or (values[0] + 1,)

    def apply_step(self, step: Step, values: Sequence[Tensor]) -> Tensor:
        given = [values[i] for i in step.arguments]
        if isinstance(step.function, str):
            return _first(self.layers[step.function](*given))
        return _first(step.function(*given))


def _first(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    return result if isinstance(result, Tensor) else result[0]


def random_torch(seed: int, most_steps: int = 10) -> tuple[RandomModule, tuple[Tensor, ...]]:
    """Return the module of a seed, and its inputs."""
    rng = np.random.default_rng(seed)
    manual_seed(seed)
    inputs = _random_inputs(rng)
    module, values = RandomModule().eval(), [*inputs]
    wanted = int(rng.integers(1, most_steps + 1))
    for _ in range(10 * wanted):
        if len(module.steps) >= wanted:
            break
        step = _random_step(rng, module, values)
        try:
            with torch.no_grad():
                result = module.apply_step(step, values)
        except (RuntimeError, IndexError, ValueError, AssertionError, TypeError):
            continue
        if result.dtype in TYPES and 0 < prod(result.shape) <= MOST:
            module.steps.append(step)
            values.append(result)
    return module, inputs


class NotExportedError(Exception):
    """The exporter does not take what PyTorch runs."""


def export_random(seed: int) -> ExportedProgram:
    """Return the exported module of a seed, in which some sizes may be open."""
    module, inputs = random_torch(seed)
    rng = np.random.default_rng((seed, 1))
    open_sizes = {axis: Dim.AUTO for axis in range(inputs[0].dim()) if rng.random() < 0.6}
    if open_sizes and rng.random() < 0.4:
        shapes = ((open_sizes, *[None] * (len(inputs) - 1)),)
        with suppress(Exception):  # its exceptions are of many classes
            return torch.export.export(module, inputs, dynamic_shapes=shapes)
    try:
        return torch.export.export(module, inputs)
    except Exception as e:
        raise NotExportedError(type(e).__name__) from e


def _random_inputs(rng: np.random.Generator) -> tuple[Tensor, ...]:
    shape = tuple(int(rng.choice(SIZES)) for _ in range(int(rng.choice((1, 2, 3, 4, 4, 5)))))
    inputs = [from_numpy(rng.standard_normal(shape).astype(np.float32))]
    if rng.random() < 0.2:
        inputs.append(from_numpy(rng.standard_normal(shape).astype(np.float32)))
    if rng.random() < 0.2:
        few = tuple(int(rng.choice(SIZES)) for _ in range(int(rng.integers(1, 3))))
        inputs.append(from_numpy(rng.integers(0, 4, few)))
    if rng.random() < 0.1:
        inputs.append(from_numpy(rng.random(shape) < 0.5))
    return tuple(inputs)


def _random_step(rng: np.random.Generator, module: RandomModule, values: list[Tensor]) -> Step:
    late = len(values) - 1 - min(int(rng.geometric(0.4)) - 1, len(values) - 1)
    any_of = int(rng.integers(len(values)))
    match int(rng.integers(5)):
        case 0:
            return Step(_choose(rng, UNARY), (late,))
        case 1:
            return Step(_choose(rng, BINARY), (late, any_of))
        case 2:
            return Step(_choose(rng, movements(rng, values[late])), (late,))
        case 3:
            return Step(_choose(rng, selections(rng, values[late])), (late,))
        case _:
            name = f"layer{len(module.layers)}"
            module.layers[name] = _choose(rng, layers(rng, values[late]))().eval()
            return Step(name, (late,))


def _choose(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]
