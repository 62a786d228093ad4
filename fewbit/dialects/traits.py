"""Properties of ops, declared beside the op and asked for by passes.

A pass that is right for all ops with some property asks for it, `MovesData.holds(op)`, and never
lists the ops that it knows: a new op is treated like its kind from the first day. Some ops have a
property in one of their forms only: pooling picks values where it takes the largest. Such a trait
is given a condition where it is declared, `PicksElements(where=_takes_largest)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

from xdsl.ir import Block, Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait, OpTrait


class Canonicalizes(HasCanonicalizationPatternsTrait):
    """`canonicalize` simplifies the op by its patterns in `dialects/canonicalization`."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        from fewbit.dialects.canonicalization import patterns_of

        return patterns_of(op)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


def always(op: Any) -> bool:
    """Return true: the condition of a property that every form of an op has."""
    return True


@dataclass(frozen=True)
class Property(OpTrait):
    """What passes may know of an op; `where` says in which of its forms."""

    where: Callable[[Any], bool] = always

    @classmethod
    def holds(cls, op: Operation | Block) -> TypeGuard[Operation]:
        """Return whether the owner of a value is an op with the property, in its form."""
        if not isinstance(op, Operation):
            return False
        return any(isinstance(trait, cls) and trait.where(op) for trait in op.traits)


class Elementwise(Property):
    """An element of the result depends on those at its place in the operands, which broadcast."""


class KeepsSign(Property):
    """Operands that are nowhere negative give results that are nowhere negative."""


class NeverNegative(KeepsSign):
    """No element of the results is negative, whatever the operands are."""


class PicksElements(KeepsSign):
    """Each element of the result is one of the operands', picked by its place or by its size.

    Rounding keeps an order, so it makes no difference whether one rounds before or after.
    """


class MovesData(PicksElements):
    """The elements of the operands in another order or shape; no value is looked at."""


class TreatsFeaturesAlike(Property):
    """Where the features of rows are permuted, so is the result, and changes in nothing else."""
