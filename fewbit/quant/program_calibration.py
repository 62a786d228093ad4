"""Static activation scales of a program from sample data, one for each layer.

The interpreter runs the float program and shows what layers are given (`layer_inputs`), so any
float program can be calibrated, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fewbit.interpreter.values import Value
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.layer_inputs import Inputs, observe_inputs
from fewbit.quant.observer import Method, Observers
from fewbit.quant.quantize import schemes_of
from fewbit.quant.recipe import RecipeLike


def calibrate_program(
    program: Program,
    data: Iterable[Inputs],
    recipe: RecipeLike,
    method: Method = "minmax",
    percentile: float = 99.99,
) -> Calibration:
    """The static scale of every layer whose activations the recipe quantizes.

    Each item of `data` is the program's inputs. Asymmetric layers get a zero point too; their
    method is "minmax".
    """
    observers = Observers(schemes_of(program, recipe), method, percentile)

    def see(names: tuple[str, ...], x: Value) -> None:
        for name in names:
            observers.see(name, x.astype(np.float32))

    outputs = observe_inputs(program, data, observers.schemes, see, "Calibrating")
    return observers.calibration(expected=outputs)
