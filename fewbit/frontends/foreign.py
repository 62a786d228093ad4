# pyright: basic
"""Models of other frameworks than PyTorch: which front end takes an object or a file.

An object is known by the packages that its classes come from, a file by its suffix or content, so
that no framework is loaded to find out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.frontends import Shapes
    from fewbit.program import Program

EXPORTED = (".jax", ".jax_export")
"""Files of what `jax.export` has serialized."""
MODULES = (".mlir", ".mlirbc", ".stablehlo")
_STABLEHLO = re.compile(rb"\b(stablehlo|chlo|vhlo)\.")


def import_object(
    model: Any, example_inputs: Sequence[Any], input_shapes: Shapes | None
) -> Program | None:
    """The program of a JAX function or a Keras model; None for any other object."""
    families = {each.__module__.partition(".")[0] for each in type(model).__mro__}
    if "keras" in families:
        from fewbit.frontends.keras import import_keras

        return import_keras(model, _listed(input_shapes) or _shapes_of(example_inputs))
    if families & {"jax", "jaxlib"}:
        from fewbit.frontends.jax import import_jax

        return import_jax(model, example_inputs or _structs(input_shapes))
    if "tensorflow" in families:
        raise UsageError(
            "TensorFlow's models are imported from files",
            hint="save it with tf.saved_model.save(model, 'folder') and give the folder's name",
        )
    return None


def import_file(path: Path, input_shapes: Shapes | None) -> Program | None:
    """The program of a file or folder of another framework; None for one of ours."""
    if path.suffix == ".keras":
        from fewbit.frontends.keras import import_keras_file

        return import_keras_file(path, _listed(input_shapes))
    if path.suffix in EXPORTED:
        from fewbit.frontends.jax import import_jax, load_exported

        return import_jax(load_exported(path))
    if path.is_dir():
        from fewbit.frontends.tensorflow import import_saved_model, is_saved_model

        return import_saved_model(path, _listed(input_shapes)) if is_saved_model(path) else None
    if path.suffix in MODULES and is_stablehlo(path):
        from fewbit.frontends.stablehlo import import_stablehlo

        return import_stablehlo(path)
    return None


def takes_shapes(name: str) -> bool:
    """Whether the sizes of inputs can be chosen for the model that a text names."""
    path = Path(name)
    return path.suffix == ".keras" or (path / "saved_model.pb").is_file()


def is_stablehlo(path: Path) -> bool:
    from fewbit.frontends.stablehlo.read import BYTECODE

    data = path.read_bytes()
    return data.startswith(BYTECODE) or _STABLEHLO.search(data) is not None


def _listed(shapes: Shapes | None) -> list[Any] | None:
    from fewbit.frontends.input_shape import InputShape

    if shapes is None:
        return None
    given = shapes.values() if isinstance(shapes, Mapping) else shapes
    return [InputShape.of(shape) for shape in given]


def _shapes_of(example_inputs: Sequence[Any]) -> list[Any] | None:
    from fewbit.frontends.input_shape import DTYPES, InputShape

    words = {name: word for word, name in DTYPES.items()}
    made = [InputShape(tuple(x.shape), words[str(x.dtype).split(".")[-1]]) for x in example_inputs]
    return made or None


def _structs(shapes: Shapes | None) -> tuple[Any, ...]:
    """Inputs of a JAX function by their shapes."""
    if shapes is None:
        return ()
    from fewbit.frontends.input_shape import DTYPES
    from fewbit.frontends.jax import struct

    return tuple(struct(s, DTYPES[s.dtype]) for s in _listed(shapes) or ())
