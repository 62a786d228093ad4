"""Front ends: models of any framework as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.program import Program

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram

    Model = nn.Module | ExportedProgram | Program | str | Path | Any

Shapes = Mapping[str, Sequence[int] | str | int] | Sequence[Sequence[int] | str]
"""Sizes, or a text with sizes and type: `1x16:i64`; of ONNX also an axis by its name."""


def import_model(
    model: Model,
    example_inputs: Sequence[Any] = (),
    dynamic_shapes: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Program:
    """A program of a PyTorch module or exported program, a JAX function or `jax.export` of one, a
    Keras model, or of what a text names.

    Texts: `zoo:NAME`, `file.py:factory`, `model.onnx`, `model.pt2`, `model.keras`, `program.mlir`,
    of ours or of StableHLO, a SavedModel's folder, or one that `Program.save` wrote. `input_shapes`
    makes example inputs where there are none: floats, or of the type in a text such as `1x16:i64`.
    Of a model with dynamic sizes it fixes these. `constants` are values of inputs that an ONNX
    model is to have built in.
    """
    if isinstance(model, Program):
        return model
    if isinstance(model, str | Path):
        from fewbit.frontends.locate import import_named

        return import_named(str(model), input_shapes, constants)
    from fewbit.frontends.foreign import import_object

    program = import_object(model, example_inputs, input_shapes)
    if program is not None:
        return program
    from fewbit.frontends.torch import import_torch

    if input_shapes is not None and len(example_inputs) == 0:
        from fewbit.frontends.locate import made_up_inputs

        example_inputs = made_up_inputs(input_shapes)
    return import_torch(model, example_inputs, example_kwargs, dynamic_shapes)
