"""JAX functions as programs, through `jax.export` and StableHLO.

A model is an `Exported`, a file of one, or a function with example inputs. Arrays that the function
closes over are constants. Where its first argument is a tree of parameters, the caller hands that
tree over: its leaves become weights, called as the tree calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fewbit.base.files import PathLike
from fewbit.errors import MissingToolError, Place, UnsupportedError, UsageError
from fewbit.frontends.stablehlo import Weights, import_stablehlo
from fewbit.frontends.stablehlo.constants import ELEMENTS
from fewbit.frontends.stablehlo.names import parameter_path
from fewbit.frontends.stablehlo.ops import TensorType
from fewbit.program.program import Program

INSTALL = "pip install 'fewbit[jax]'"


def import_jax(
    model: Any, example_inputs: Sequence[Any] = (), *, parameters: Any = None
) -> Program:
    """A program of an exported function, or of a function traced on example inputs.

    Inputs may be arrays or `jax.ShapeDtypeStruct`s. `parameters` is the function's first argument.
    """
    exported = model if _is_exported(model) else _export(model, example_inputs, parameters)
    _check(exported)
    weights = None if parameters is None else _weights(exported, parameters)
    text: bytes = exported.mlir_module().encode()
    leaves = 0 if parameters is None else _jax().tree.structure(parameters).num_leaves
    unused = unused_inputs(exported, leaves)
    return import_stablehlo(text, weights or {}, name=exported.fun_name, unused=unused)


def load_exported(path: PathLike) -> Any:
    """Load from a file what `exported.serialize()` gave."""
    exported = _jax("jax.export", Place(file=str(path)))
    try:
        return exported.deserialize(bytearray(Path(path).read_bytes()))
    except Exception as e:
        raise UsageError(
            f"this is no function that jax.export has serialized: {type(e).__name__}: {e}",
            place=Place(file=str(path)),
        ) from e


def _is_exported(model: Any) -> bool:
    return hasattr(model, "mlir_module") and hasattr(model, "in_avals")


def _jax(module: str = "jax", place: Place | None = None) -> Any:
    """JAX, or a module of it, which is loaded when it is needed."""
    try:
        return import_module(module)
    except ImportError as e:
        raise MissingToolError("JAX is not installed", place=place, hint=INSTALL) from e


def struct(shape: Sequence[int], dtype: Any) -> Any:
    """The shape and type of an input, in the precision that JAX has."""
    jax = _jax()
    return jax.ShapeDtypeStruct(tuple(shape), jax.dtypes.canonicalize_dtype(dtype))


def export(function: Any, *arguments: Any) -> Any:
    return _jax("jax.export").export(function, platforms=("cpu",))(*arguments)


def _export(function: Any, example_inputs: Sequence[Any], parameters: Any) -> Any:
    if not callable(function):
        raise UsageError(f"a {type(function).__name__} is not a JAX function")
    leading = () if parameters is None else (parameters,)
    if not example_inputs and parameters is None:
        raise UsageError(
            "a JAX function is traced, so it needs inputs",
            hint="pass example_inputs=(x,), arrays or jax.ShapeDtypeStruct",
        )
    jax = _jax()
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return export(jitted, *jax.tree.map(_shape_struct, (*leading, *example_inputs)))


def _shape_struct(value: Any) -> Any:
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        value = np.asarray(value)
    return struct(value.shape, value.dtype)


def _check(exported: Any) -> None:
    symbolic = [str(a) for a in exported.in_avals if not all(isinstance(s, int) for s in a.shape)]
    if symbolic:
        raise UnsupportedError(
            f"the function has inputs of symbolic shape: {', '.join(symbolic)}",
            hint="export it for shapes of numbers: jax.export.export(f)(jax.ShapeDtypeStruct(...))",
        )
    if exported.nr_devices != 1:
        raise UnsupportedError(
            f"the function is exported for {exported.nr_devices} devices, not one"
        )


def unused_inputs(exported: Any, weights: int = 0) -> dict[int, TensorType]:
    """Inputs behind the weights that the exported module has left out, as nothing reads them."""
    return {
        index - weights: TensorType(tuple(aval.shape), ELEMENTS[np.dtype(aval.dtype)])
        for index, aval in enumerate(exported.in_avals)
        if index >= weights and index not in exported.module_kept_var_idx
    }


def _weights(exported: Any, parameters: Any) -> Weights:
    """The leaves of the parameters, by their position among the arguments that are used."""
    tree_util = _jax("jax.tree_util")
    leaves = tree_util.tree_flatten_with_path(parameters)[0]
    weights: dict[int, tuple[str, Any]] = {}
    for position, index in enumerate(exported.module_kept_var_idx):
        if index < len(leaves):
            path, leaf = leaves[index]
            weights[position] = (
                parameter_path(tree_util.keystr(path)),
                np.asarray(leaf, exported.in_avals[index].dtype),
            )
    return weights
