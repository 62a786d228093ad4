"""Front ends: models of any framework as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.base.garbage import collect_rarely
from fewbit.base.progress import progress
from fewbit.errors import UsageError
from fewbit.frontends.frontend import Given
from fewbit.program.program import Program

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram

    from fewbit.language.config import Logits
    from fewbit.quant.cache_scheme import CacheSchemeLike

    Model = nn.Module | ExportedProgram | Program | str | Path | Any

Shapes = Mapping[str, Sequence[int] | str | int] | Sequence[Sequence[int] | str]
"""Sizes, or a text with sizes and type: `1x16:i64`; of ONNX also an axis by its name."""


@collect_rarely()
def import_model(
    model: Model,
    example_inputs: Sequence[Any] | Mapping[str, Any] = (),
    dynamic_shapes: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Any] | None = None,
    context: int | None = None,
    cache: CacheSchemeLike = "f32",
    logits: Logits = "last",
    sequences: int = 1,
    steps: bool = False,
) -> Program:
    """A program of a PyTorch module or exported program, a JAX function or `jax.export` of one, a
    Keras model, or of what a text names.

    Texts: `zoo:NAME`, `file.py:factory`, `timm:create_model('resnet18')`, `model.onnx`,
    `model.pt2`, `model.keras`, `model.gguf`, `program.mlir`, of ours or of StableHLO, the folder of
    a SavedModel or of a Hugging Face model, or one that `Program.save` wrote. A mapping as
    `example_inputs` has them by name, as tokenizers of transformers return them. `input_shapes`
    makes example inputs where there are none: floats, or of the type in a text such as `1x16:i64`;
    it fixes the sizes of a model that has dynamic ones. `constants` are values of inputs that an
    ONNX model is to have built in. `context` is how many tokens a language model can keep, and
    `cache` what their keys and values are kept as. `logits` of all tokens, and several `sequences`
    that are decoded together, are for decoders from checkpoints; see docs/language-models.md. With
    `steps`, a language model takes one token a call, and no size depends on its position: so it is
    for targets that fix all sizes, as `cuda` does.
    """
    given = Given(
        example_inputs,
        example_kwargs,
        dynamic_shapes,
        input_shapes,
        constants,
        context,
        cache,
        logits,
        sequences,
        steps,
    )
    if isinstance(model, Program):
        if context is not None:
            raise UsageError("a program has its context already", hint="leave the context out")
        given.refuse_decoding()
        return model
    named = isinstance(model, str | Path)
    with progress(f"Importing {model if named else type(model).__name__}"):
        return _import_named(str(model), given) if named else _import_object(model, given)


def _import_named(name: str, given: Given) -> Program:
    from fewbit.frontends.locate import import_named

    return import_named(name, given)


def _import_object(model: Any, given: Given) -> Program:
    from fewbit.frontends.registry import find_for_object
    from fewbit.frontends.torch.frontend import Torch

    given.refuse_decoding()
    if given.context is not None:
        from fewbit.frontends.language.transformers_model import import_decoder

        return import_decoder(model, given.context, steps=given.steps)
    # PyTorch's answer to an unknown format says what a model is.
    return (find_for_object(model) or Torch()).import_object(model, given)
