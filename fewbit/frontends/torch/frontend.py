"""PyTorch: modules, exported programs, and `.pt2` archives of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewbit.frontends.frontend import Frontend, Given, packages_of
from fewbit.program.program import Program


class Torch(Frontend):
    def takes(self, model: Any) -> bool:
        return "torch" in packages_of(model)

    def import_object(self, model: Any, given: Given) -> Program:
        from fewbit.frontends.input_shape import example_inputs
        from fewbit.frontends.torch import import_torch

        inputs = given.example_inputs
        if given.sizes is not None and len(inputs) == 0:
            inputs = example_inputs(given.sizes)
        return import_torch(model, inputs, given.example_kwargs, given.dynamic_shapes)

    def reads(self, path: Path) -> bool:
        return path.suffix == ".pt2"

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.torch import import_torch
        from fewbit.frontends.torch.capture import load

        return import_torch(load(path))
