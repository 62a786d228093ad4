"""All front ends, in the order in which they are asked whether a model is theirs.

Ours are listed here; those of other packages come by the entry points of the group
`fewbit.frontends`, whose values are classes derived from `Frontend`, and are asked first.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fewbit.base.plugins import make_from
from fewbit.frontends.frontend import Frontend

GROUP = "fewbit.frontends"
OURS = (
    # A Keras model may be a torch module, too: its layers are, on that backend.
    "fewbit.frontends.keras.frontend:Keras",
    "fewbit.frontends.jax.frontend:Jax",
    "fewbit.frontends.tensorflow.frontend:TensorFlow",
    "fewbit.frontends.onnx.frontend:Onnx",
    "fewbit.frontends.torch.frontend:Torch",
    "fewbit.frontends.language.frontend:Language",
    "fewbit.frontends.stablehlo.frontend:StableHlo",
)


def find_for_object(model: Any) -> Frontend | None:
    """The front end that takes an object, if there is one."""
    return next((each for each in _frontends(tuple(sys.path)) if each.takes(model)), None)


def find_for_file(path: Path) -> Frontend | None:
    """The front end that reads a file or folder, if there is one."""
    return next((each for each in _frontends(tuple(sys.path)) if each.reads(path)), None)


@cache
def _frontends(path: tuple[str, ...]) -> tuple[Frontend, ...]:
    others = [point.value for point in entry_points(group=GROUP)]
    return tuple(make_from(place, "front end") for place in (*others, *OURS))
