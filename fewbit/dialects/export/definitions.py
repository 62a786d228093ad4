"""What the exports read from an xDSL definition beyond its constraints.

Some rules are in verifiers, which are code. One kind can still be exported: a definition with a
single integer parameter is asked about every small integer, and what it accepts is its rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from xdsl.dialects.builtin import IndexType, IntegerAttr, i32, i64
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AttrConstraint,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    OpDef,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    RangeVarConstraint,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.errors import UnsupportedError

SEGMENT_SIZES = (
    AttrSizedOperandSegments.attribute_name,
    AttrSizedResultSegments.attribute_name,
)
"""Attributes that other tools make themselves."""

PROBED = 64


def attribute_definitions(dialect: Dialect) -> Iterator[type[ParametrizedAttribute]]:
    """Yield types first, then attributes, each in the order of the dialect."""
    for wanted in (True, False):
        for definition in dialect.attributes:
            if is_type(definition) is not wanted:
                continue
            if not issubclass(definition, ParametrizedAttribute):
                raise UnsupportedError(
                    f"{definition.name} holds Python data, which no other tool can read",
                    hint="define it as a ParametrizedAttribute",
                )
            yield definition


def operation_definitions(dialect: Dialect) -> Iterator[tuple[type[IRDLOperation], OpDef]]:
    for definition in dialect.operations:
        if not issubclass(definition, IRDLOperation):
            raise UnsupportedError(
                f"{definition.name} has no declared operands, results and attributes",
                hint="define it with irdl_op_definition",
            )
        yield definition, definition.get_irdl_definition()


def is_type(definition: type[Attribute]) -> bool:
    return issubclass(definition, TypeAttribute)


def mnemonic(definition: type[Attribute] | type[IRDLOperation]) -> str:
    """Return the name without that of the dialect."""
    _, dot, name = definition.name.partition(".")
    if not dot:
        raise UnsupportedError(
            f"{definition.name} has no dialect in its name and cannot be exported"
        )
    return name


def is_of(dialect: Dialect, definition: type[Attribute]) -> bool:
    if not hasattr(definition, "name"):
        raise UnsupportedError(
            f"{definition.__name__} is a family of types or attributes, which cannot be exported"
        )
    return definition.name.startswith(f"{dialect.name}.")


def summary(definition: type) -> str:
    """Return the first line of a definition's own documentation."""
    text = inspect.cleandoc(definition.__doc__ or "")
    return text.split("\n", 1)[0] if "__doc__" in vars(definition) else ""


def description(definition: type) -> str:
    """Return what the documentation says after its first line."""
    text = inspect.cleandoc(definition.__doc__ or "")
    return text.partition("\n")[2].strip() if "__doc__" in vars(definition) else ""


def has_own_rules(definition: type[IRDLOperation]) -> bool:
    """Return whether a definition has a verifier of its own, which xDSL wraps."""
    wrapped = inspect.getclosurevars(definition.verify_).nonlocals.get("custom_verify")
    return wrapped not in (None, Operation.verify_)


def element_constraint(constraint: RangeConstraint) -> AttrConstraint:
    """Return what each value of an operand or result must be."""
    if isinstance(constraint, RangeOf):
        return constraint.constr
    if isinstance(constraint, RangeLengthConstraint | RangeVarConstraint):
        return element_constraint(constraint.constraint)
    raise UnsupportedError(f"a constraint on several values cannot be exported: {constraint}")


def accepted_integers(
    definition: type[ParametrizedAttribute],
) -> tuple[IntegerAttr, ...] | None:
    """Return the values of a single integer parameter, where they are few; else None."""
    parameters = definition.get_irdl_definition().parameters
    if len(parameters) != 1 or parameters[0][1].constr.get_bases() != {IntegerAttr}:
        return None
    accepted = [
        attribute
        for type in (i64, i32, IndexType())
        for value in range(-PROBED, PROBED + 1)
        if _accepts(definition, attribute := IntegerAttr(value, type))
    ]
    bounded = all(abs(attribute.value.data) < PROBED for attribute in accepted)
    return tuple(accepted) if accepted and bounded else None


def _accepts(definition: type[ParametrizedAttribute], parameter: Attribute) -> bool:
    try:
        definition.new([parameter])
    except VerifyException:
        return False
    return True
