"""A Keras model on the JAX backend as StableHLO, with its variables as named arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from fewbit.errors import UsageError
from fewbit.frontends.jax import export, struct
from fewbit.frontends.open_sizes import Sizes, close_batch
from fewbit.frontends.stablehlo.names import parameter_path


@dataclass(frozen=True)
class Exported:
    text: bytes
    weights: dict[int, tuple[str, Any]]
    inputs: list[str]
    """What the arguments that are no weights are called."""
    declared: dict[str, Sizes]
    """The shapes of inputs as the model has them, where no others were given."""


def export_keras(model: Any, input_shapes: Sequence[Sequence[int]] | None = None) -> Exported:
    jax, keras = import_module("jax"), import_module("keras")
    inputs = inputs_of(model, input_shapes)
    if not model.built:
        zeros = [keras.ops.zeros(shape, dtype) for _, shape, dtype in inputs]
        model(zeros[0] if len(zeros) == 1 else zeros)
    mode = {"training": False} if "training" in signature(model.call).parameters else {}
    structure = getattr(model, "_inputs_struct", None)
    variables = [model.trainable_variables, model.non_trainable_variables]

    def call(trainable: Any, others: Any, *given: Any) -> Any:
        packed = given[0] if len(given) == 1 else list(given)
        if structure is not None:
            packed = keras.tree.pack_sequence_as(structure, list(given))
        outputs, _ = model.stateless_call(trainable, others, packed, **mode)
        return keras.tree.flatten(outputs)

    shapes = [[struct(v.shape, v.dtype) for v in group] for group in variables]
    given = [struct(shape, dtype) for _, shape, dtype in inputs]
    exported = export(jax.jit(call), *shapes, *given)
    flat = [v for group in variables for v in group]
    weights = {
        position: (_name(flat[index], model), np.asarray(flat[index].value))
        for position, index in enumerate(exported.module_kept_var_idx)
        if index < len(flat)
    }
    names: list[str] = [
        inputs[index - len(flat)][0] for index in exported.module_kept_var_idx if index >= len(flat)
    ]
    declared = declared_shapes(model, input_shapes)
    return Exported(exported.mlir_module().encode(), weights, names, declared)


def declared_shapes(model: Any, given: Sequence[Sequence[int]] | None) -> dict[str, Sizes]:
    """The shapes of a model's inputs, with None for what it leaves open; none if others count."""
    inputs = (getattr(model, "inputs", None) or ()) if given is None else ()
    return {tensor.name: tuple(tensor.shape) for tensor in inputs}


def inputs_of(
    model: Any, input_shapes: Sequence[Sequence[int]] | None
) -> list[tuple[str, tuple[int, ...], str]]:
    """Names, shapes and types of a model's inputs; a batch that it leaves open is 1."""
    declared: list[Any] = list(getattr(model, "inputs", None) or ())
    if not declared and input_shapes is None:
        raise UsageError(
            "the sizes of this model's inputs are not known",
            hint="give them: --input-shape 1x32x32x3, or input_shapes=[(1, 32, 32, 3)]",
        )
    if not declared:
        shapes: list[Any] = [] if input_shapes is None else list(input_shapes)
        return [(f"input{i}", tuple(s), _dtype(s, "float32")) for i, s in enumerate(shapes)]
    if input_shapes is not None and len(input_shapes) != len(declared):
        raise UsageError(f"the model has {len(declared)} inputs, not {len(input_shapes)}")
    specs: list[tuple[str, tuple[int, ...], str]] = []
    for i, tensor in enumerate(declared):
        given = None if input_shapes is None else tuple(input_shapes[i])
        shape = close_batch(tensor.name, tensor.shape) if given is None else given
        specs.append((tensor.name, shape, str(tensor.dtype)))
    return specs


def _dtype(shape: Any, default: str) -> str:
    from fewbit.frontends.input_shape import DTYPES, InputShape

    return DTYPES[shape.dtype] if isinstance(shape, InputShape) else default


def made_up(inputs: Sequence[tuple[str, tuple[int, ...], str]]) -> tuple[Any, ...]:
    """Inputs to trace a model of the PyTorch backend on."""
    import torch

    return tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for _, shape, dtype in inputs)


def _name(variable: Any, model: Any) -> str:
    return parameter_path(variable.path.removeprefix(f"{model.name}/"))
