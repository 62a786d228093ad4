"""The search that batch norm folding and smoothing share: a module, and the layers that go with it.

Each transformation says which modules are candidates and which layers take part; it refuses by
raising `UnfitError` with the reason, which goes to the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from fewbit.base.typed_torch import named_modules
from fewbit.quant.fusion.dataflow import Dataflow
from fewbit.quant.fusion.layers import Layer
from fewbit.quant.fusion.report import Fused, FusionReport, Left


class UnfitError(Exception):
    """Why a module is left as it is."""


@dataclass(frozen=True)
class Match:
    """A module and the layers, by path, that are changed with it."""

    path: str
    module: Layer
    layers: dict[str, Layer]

    def fused(self) -> Fused:
        return Fused(self.path, tuple(self.layers))


def find_matches(
    model: nn.Module,
    flow: Dataflow,
    is_candidate: Callable[[nn.Module], bool],
    layers_of: Callable[[str, Layer, Dataflow], dict[str, Layer]],
    one_path: bool,
    report: FusionReport,
) -> list[Match]:
    """Every candidate with its layers; those without are reported as left."""
    matches: list[Match] = []
    for path, module in named_modules(model):
        if not is_candidate(module):
            continue
        try:
            if flow.reads_values and not one_path:
                raise UnfitError(f"the model looks at values of tensors ({flow.reads_values})")
            matches.append(Match(path, module, layers_of(path, module, flow)))
        except UnfitError as reason:
            report.left.append(Left(path, str(reason)))
    return matches
