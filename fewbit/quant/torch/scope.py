"""Modules in whose calls functions on certain weights compute with few bits.

A scope *is* the user's module with another class, as quantized layers are; while it is called, a
mode gives every call of a layer's function on one of its weights the weight's rounding. Weights are
found by name at each call, so copies, moved models and replaced parameters work. The inner of two
scopes decides, which is how a float layer whose weight is tied to a few-bit one stays float.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from fewbit.errors import Error
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.functional import LayerCall, LayerCalls, held_tensor


@dataclass
class FewBitWeight:
    """The rounding of a layer that is a function's call on a weight."""

    name: str
    scheme: LayerScheme
    act_scale: float | None = None
    act_zero_point: int | None = None
    exact: bool = False
    used: bool | None = False
    """Whether a call on it was rounded; None where one is expected and nothing ran yet."""


class QuantScope(nn.Module):
    """What modules around such calls share."""

    FLOAT: ClassVar[type[nn.Module]]
    few_bit_weights: dict[str, FewBitWeight]
    """By the path of the tensor in this module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known: dict[int, FewBitWeight] = {}
        for path, weight in self.few_bit_weights.items():
            weight.used = bool(weight.used)
            if (tensor := held_tensor(self, path)) is not None:
                known[id(tensor)] = weight
        with LayerCalls(known, _compute):
            return super().__call__(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The class is made when it is needed: a pickle names the user's."""
        make, arguments, *state = super().__reduce_ex__(protocol)
        if arguments != (type(self),):
            return make, arguments, *state
        return _blank, (type(self).FLOAT,), *state


def make_scope(module: nn.Module, weights: Mapping[str, FewBitWeight]) -> QuantScope:
    """Make a scope of a module, in place."""
    module.__class__ = _scope_class(type(module))
    assert isinstance(module, QuantScope)
    module.few_bit_weights = dict(weights)
    return module


def dissolve_scope(scope: QuantScope) -> nn.Module:
    """Undo `make_scope`, in place."""
    cls = type(scope).FLOAT
    del scope.few_bit_weights
    scope.__class__ = cls  # pyright: ignore[reportAttributeAccessIssue]
    return scope


def _compute(weight: FewBitWeight, call: LayerCall) -> Tensor:
    if weight.scheme.is_float or (call.activation is None and weight.scheme.weight is None):
        return call.plain()
    weight.used = True
    try:
        return call.few_bit(weight)
    except Error as error:
        raise error.at(layer=weight.name) from None


@functools.cache
def _scope_class(cls: type[nn.Module]) -> type[QuantScope]:
    names = {"FLOAT": cls, "__module__": cls.__module__}
    return type(f"Quant{cls.__name__}", (QuantScope, cls), names)


def _blank(cls: type[nn.Module]) -> QuantScope:
    scope_class = _scope_class(cls)
    return scope_class.__new__(scope_class)
