"""Keras 3 models as programs.

A model in memory is exported by its own backend: JAX to StableHLO, TensorFlow to a SavedModel,
PyTorch by `torch.export`. A `.keras` file is read by a process of its own (`worker`), on JAX unless
KERAS_BACKEND says otherwise, and comes back as StableHLO with its variables. Layers have their
Keras names.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit.base.files import PathLike
from fewbit.errors import MissingToolError, ParseError, Place, UnsupportedError
from fewbit.frontends.open_sizes import warn_of_open

if TYPE_CHECKING:
    from fewbit.program.program import Program

INSTALL = "pip install 'fewbit[keras]'"
BACKEND = "KERAS_BACKEND"
PARTS = ("config.json", "metadata.json", "model.weights.h5")
"""What is in the archive that a `.keras` file is."""


def import_keras(model: Any, input_shapes: Sequence[Sequence[int]] | None = None) -> Program:
    """A program of a Keras model in memory; a batch that it leaves open is 1, with a warning."""
    keras = import_module("keras")
    backend = keras.backend.backend()
    if backend == "jax":
        from fewbit.frontends.keras.export import export_keras
        from fewbit.frontends.stablehlo import import_stablehlo

        exported = export_keras(model, input_shapes)
        warn_of_open(exported.declared)
        return import_stablehlo(
            exported.text, exported.weights, name=model.name, input_names=exported.inputs
        )
    if backend == "torch":
        from fewbit.frontends.keras.export import declared_shapes, inputs_of, made_up
        from fewbit.frontends.torch import import_torch

        warn_of_open(declared_shapes(model, input_shapes))
        return import_torch(model.eval(), made_up(inputs_of(model, input_shapes)))
    from fewbit.frontends.tensorflow import import_saved_model

    with TemporaryDirectory(prefix="fewbit-") as folder:
        model.export(folder, verbose=False)
        return import_saved_model(folder, input_shapes)


def import_keras_file(
    path: PathLike, input_shapes: Sequence[Sequence[int]] | None = None
) -> Program:
    """A program of a `.keras` file, whose model is built in another process."""
    backend = os.environ.get(BACKEND, "jax")
    if backend == "tensorflow":
        from fewbit.frontends.tensorflow import import_saved_model

        _check_archive(Path(path))
        return import_saved_model(path, input_shapes)
    if backend != "jax":
        raise UnsupportedError(
            f"a .keras file is not read on the backend '{backend}'",
            hint=f"{BACKEND}=jax, or tensorflow; or load it yourself and pass the model",
        )
    missing = [name for name in ("keras", "jax") if find_spec(name) is None]
    if missing:
        raise MissingToolError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            place=Place(file=str(path)),
            hint=f"{INSTALL}; or set {BACKEND}=tensorflow, see docs/frontends.md",
        )
    _check_archive(Path(path))
    from fewbit.base.start import command
    from fewbit.frontends.handover import import_handover, run_worker

    with TemporaryDirectory(prefix="fewbit-") as folder:
        worker = command("fewbit.frontends.keras.worker")
        run_worker(worker, Path(path), Path(folder), input_shapes, {BACKEND: backend})
        return import_handover(Path(folder), str(path))


def _check_archive(path: Path) -> None:
    """Refuse a file that is not a whole `.keras` archive before Keras is loaded for it."""
    place, hint = Place(file=str(path)), "save the model again: model.save('net.keras')"
    try:
        with zipfile.ZipFile(path) as archive:
            missing = {*PARTS} - {*archive.namelist()}
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as e:
        what = f"this is not a .keras file, or a damaged one: {e}"
        raise ParseError(what, place=place, hint=hint) from e
    if missing:
        what = f"this is not a .keras file: it has no {' and no '.join(sorted(missing))}"
        raise ParseError(what, place=place, hint=hint)
    if damaged is not None:
        raise ParseError(f"the .keras file is damaged in {damaged}", place=place, hint=hint)
