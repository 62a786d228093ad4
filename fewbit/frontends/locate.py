# pyright: basic
"""Models named by a text: a zoo entry, a factory in a Python file, a file, a saved program."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewbit.errors import Place, UsageError
from fewbit.frontends import Shapes
from fewbit.program import Program

LATER = {
    ".onnx": "ONNX",
    ".keras": "Keras",
    ".tflite": "TensorFlow Lite",
    ".stablehlo": "StableHLO",
}
"""Kinds of files that other front ends will read."""


def import_named(name: str, input_shapes: Shapes | None = None) -> Program:
    if name.startswith("zoo:"):
        return _from_zoo(name.removeprefix("zoo:"))
    file, colon, factory = name.rpartition(":")
    if colon and file.endswith(".py"):
        return _from_python(Path(file), factory, input_shapes)
    path = Path(name)
    if path.suffix in LATER:
        raise UsageError(f"{LATER[path.suffix]} models are not read by this version")
    if not path.exists():
        raise UsageError(
            f"there is no model '{name}'",
            hint="give zoo:NAME, file.py:factory, model.pt2, program.mlir or a saved program",
        )
    if path.suffix == ".pt2":
        return _from_archive(path)
    return Program.load(path)


def _from_zoo(name: str) -> Program:
    from fewbit.frontends.torch import import_torch
    from fewbit.models.registry import create, find_entry

    entry = find_entry(name)
    # torch.export takes a size of 1 for a constant.
    return import_torch(create(name), entry.example_inputs(2), dynamic_shapes=entry.dynamic_shapes)


def _from_python(path: Path, factory: str, input_shapes: Shapes | None) -> Program:
    """`factory()` gives a module, or a module, its example inputs, and perhaps dynamic shapes."""
    from fewbit.frontends import import_model

    made = getattr(_loaded(path), factory, None)
    if made is None:
        raise UsageError(f"there is no '{factory}' in the file", place=Place(file=str(path)))
    try:
        result = made()
    except Exception as e:
        raise UsageError(
            f"'{factory}' fails: {type(e).__name__}: {e}", place=Place(file=str(path))
        ) from e
    if not isinstance(result, tuple):
        return import_model(result, input_shapes=input_shapes)
    if len(result) not in (2, 3):
        raise UsageError(
            f"'{factory}' gave {len(result)} values",
            place=Place(file=str(path)),
            hint="return the model, or (model, example_inputs), or also dynamic_shapes",
        )
    return import_model(*result)


def _loaded(path: Path) -> Any:
    """The user's own file, run as a module; its folder is where its imports are found."""
    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise UsageError(
            f"the file does not load: {type(e).__name__}: {e}", place=Place(file=str(path))
        ) from e
    finally:
        sys.path.pop(0)
    return module


def _from_archive(path: Path) -> Program:
    import torch

    from fewbit.frontends.torch import import_torch

    try:
        exported = torch.export.load(path)
    except Exception as e:
        raise UsageError(f"not an archive of torch.export: {e}", place=Place(file=str(path))) from e
    return import_torch(exported)


def random_inputs(shapes: Shapes) -> tuple[Any, ...]:
    """Float inputs of these shapes, always the same."""
    import torch

    given: Sequence[Sequence[int]] = (
        list(shapes.values()) if isinstance(shapes, Mapping) else list(shapes)
    )
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(*shape, generator=generator) for shape in given)
