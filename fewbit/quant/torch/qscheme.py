"""Widths of a model by MiCo's lists, in the order of its modules; scales are one a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from fewbit.errors import UsageError
from fewbit.quant.recipe import Recipe
from fewbit.quant.torch.prepare import prepare_qat, unprepare

Widths = Sequence[Sequence[float]]


def set_qscheme(model: nn.Module, scheme: Widths) -> nn.Module:
    """Give every layer its widths, [[weights...], [activations...]] in the order of the modules."""
    if len(scheme) != 2:
        raise UsageError(
            f"a scheme of {len(scheme)} lists",
            hint="give [[weights...], [activations...]], one width for every layer",
        )
    unset_qscheme(model)
    return prepare_qat(model, Recipe.in_order(*scheme, granularity="tensor"), inplace=True)


def unset_qscheme(model: nn.Module) -> nn.Module:
    """Make the model float again."""
    return unprepare(model, inplace=True)
