"""Keras: models of its own, and `.keras` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbit.frontends.frontend import Frontend, Given, packages_of
from fewbit.frontends.input_shape import DTYPES, InputShape
from fewbit.program.program import Program


class Keras(Frontend):
    takes_sizes = True

    def takes(self, model: Any) -> bool:
        return "keras" in packages_of(model)

    def import_object(self, model: Any, given: Given) -> Program:
        from fewbit.frontends.keras import import_keras

        return import_keras(model, given.sizes or _shapes_of(given.inputs_in_order))

    def reads(self, path: Path) -> bool:
        return path.suffix == ".keras"

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.keras import import_keras_file

        return import_keras_file(path, given.sizes)


def _shapes_of(example_inputs: Sequence[Any]) -> list[InputShape] | None:
    words = {name: word for word, name in DTYPES.items()}
    shapes = [
        InputShape(tuple(x.shape), words[str(x.dtype).split(".")[-1]]) for x in example_inputs
    ]
    return shapes or None
