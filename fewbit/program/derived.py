"""Constants that passes made of others: how, so that the same can be made of others again.

A part that repeats is lowered once, with the constants of its first call. Those of another call are
packed, folded and scaled as these were: each constant that a pass adds is noted with the constants
that it was computed from, as they were then, and with the function that computed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.dialects.mico import ConstantOp, RefAttr
from fewbit.interpreter.mico.constants import constant_value
from fewbit.program.store import WeightStore

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Derivation:
    """A function of constants."""

    sources: tuple[ConstantOp, ...]
    compute: Callable[..., Array]

    @staticmethod
    def of(compute: Callable[..., Array], *sources: ConstantOp) -> Derivation:
        """Note a function of constants as they are now."""
        return Derivation(tuple(source.clone() for source in sources), compute)


class Substitution:
    """The values of constants where some of those that they come from are replaced, by name."""

    def __init__(self, store: WeightStore, constants: Mapping[str, ConstantOp]) -> None:
        self.store, self.constants = store, constants

    def value(self, op: ConstantOp) -> Array:
        """Return the value of a constant, derived anew where it comes from replaced ones."""
        derivation = self._derivation(op)
        if derivation is not None and any(map(self._is_replaced, derivation.sources)):
            return derivation.compute(*map(self.value, derivation.sources))
        other = self.constants.get(op.sym_name.data)
        if other is None:
            return constant_value(op, self.store)
        # The type is what passes made of the first: integers may be bytes by now.
        return constant_value(ConstantOp(op.sym_name.data, op.type, other.value), self.store)

    def name(self, op: ConstantOp) -> str:
        """Return what a constant is called that stands for another: after what it comes from."""
        name = op.sym_name.data
        if name in self.constants:
            return self.constants[name].sym_name.data
        derivation = self._derivation(op)
        for source in () if derivation is None else derivation.sources:
            old, new = source.sym_name.data, self.name(source)
            if new != old and name.startswith(old):
                return new + name.removeprefix(old)
        return name

    def _is_replaced(self, op: ConstantOp) -> bool:
        if op.sym_name.data in self.constants:
            return True
        derivation = self._derivation(op)
        return derivation is not None and any(map(self._is_replaced, derivation.sources))

    def _derivation(self, op: ConstantOp) -> Derivation | None:
        return self.store.derivation(op.value.key) if isinstance(op.value, RefAttr) else None
