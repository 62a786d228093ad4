"""What an importer gives: a model of plain torch modules, and the weights that it was given.

The model computes with the float values of those weights, so that it can be traced, run and
compared. Its layers have the names that they had, which the weights go by.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import from_numpy
from fewbit.errors import UsageError
from fewbit.numerics import Quantized


class Imported(NamedTuple):
    """A plain float model, and the quantized weights of its layers by name.

    `fewbit.quantize(model, recipe, weights=weights, example_inputs=...)` takes both.
    """

    model: nn.Module
    weights: dict[str, Quantized]


class ScaledLinear(nn.Linear):
    """A Linear whose input is first multiplied, channel by channel: what AWQ leaves behind."""

    input_scale: Tensor

    def __init__(self, input_scale: Tensor, features: int, bias: Tensor | None) -> None:
        super().__init__(input_scale.numel(), features, bias is not None)  # pyright: ignore[reportUnknownMemberType]
        self.register_buffer("input_scale", input_scale.detach().float().flatten())
        if bias is not None:
            self.bias = nn.Parameter(bias.detach().float())

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input * self.input_scale, self.weight, self.bias)


def set_weight(module: nn.Module, weight: Quantized) -> None:
    """Give a module the float values of a weight."""
    module.weight = nn.Parameter(from_numpy(weight.dequantize()), requires_grad=False)


def replace_module(model: nn.Module, name: str, module: nn.Module) -> nn.Module:
    """The model with another module in one place."""
    if not name:
        return module
    model.set_submodule(name, module.train(model.training))
    return model


def need_weights(weights: dict[str, Quantized], tool: str) -> None:
    if not weights:
        raise UsageError(
            f"no layer of the model has a weight that {tool} has quantized",
            hint=f"quantize the model with {tool} first",
        )
