"""`fewbit.quantize`: a program or a model, as a program whose layers have few bits.

The verb stands with the front ends, because it imports models; `quant` knows programs only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fewbit.frontends import import_model
from fewbit.program.program import Program
from fewbit.quant import quantize as programs
from fewbit.quant.calibration import Calibration
from fewbit.quant.given import GivenWeights
from fewbit.quant.recipe import Recipe, RecipeLike

if TYPE_CHECKING:
    from fewbit.frontends import Model


def quantize(
    model: Model,
    recipe: RecipeLike,
    calibration: Calibration | Mapping[str, float] | None = None,
    *,
    weights: GivenWeights | None = None,
    example_inputs: Sequence[Any] = (),
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> Program:
    """Quantize a program, or a model that is imported first, traced on its example inputs.

    `weights` are those that another tool has quantized, by layer; see `fewbit.quant.given`. They
    must agree with the recipe, or fill in what it leaves open. Weights that stay float although the
    recipe does not ask for it are named by a warning, or with `strict` by an error.
    """
    recipe = Recipe.of(recipe)
    if not isinstance(model, Program):
        model = import_model(model, example_inputs, dynamic_shapes=dynamic_shapes)
    return programs.quantize(model, recipe, calibration, weights=weights, strict=strict)
