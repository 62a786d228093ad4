"""Constraints of xDSL definitions as TableGen expressions.

MLIR constrains types and attributes apart: a type that stands for an attribute is wrapped in a
`TypeAttrOf`. Where TableGen has a name for what is meant (`I32Attr`, `AnyFloat`), that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    ArrayOfConstraint,
    FlatSymbolRefAttrConstr,
    IntegerType,
    SymbolNameConstraint,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    MessageConstraint,
    ParamAttrConstraint,
    TypeVarConstraint,
    VarConstraint,
)

from fewbit.dialects.export.definitions import element_constraint, is_type
from fewbit.errors import UnsupportedError

Namer = Callable[[type[Attribute]], str | None]
"""The TableGen name of a definition of the exported dialect; None for those of others."""

_TYPES: dict[type[Attribute], str] = {
    builtin.ComplexType: "AnyComplex",
    builtin.FunctionType: "FunctionType",
    builtin.IndexType: "Index",
    builtin.IntegerType: "AnyInteger",
    builtin.MemRefType: "AnyMemRef",
    builtin.NoneType: "NoneType",
    builtin.TensorType: "AnyRankedTensor",
    builtin.TupleType: "AnyTuple",
    builtin.UnrankedTensorType: "UnrankedTensorOf<[AnyType]>",
    builtin.VectorType: "AnyVectorOfAnyRank",
}

_ATTRIBUTES: dict[type[Attribute], str] = {
    builtin.ArrayAttr: "ArrayAttr",
    builtin.DenseIntOrFPElementsAttr: "ElementsAttr",
    builtin.DictionaryAttr: "DictionaryAttr",
    builtin.IntegerAttr: "APIntAttr",
    builtin.StringAttr: "StrAttr",
    builtin.SymbolRefAttr: "SymbolRefAttr",
    builtin.UnitAttr: "UnitAttr",
}

_PARAMETERS: dict[type[Attribute], str] = {
    builtin.ArrayAttr: "::mlir::ArrayAttr",
    builtin.FloatAttr: "::mlir::FloatAttr",
    builtin.IntegerAttr: "::mlir::IntegerAttr",
    builtin.StringAttr: "::mlir::StringAttr",
    builtin.SymbolRefAttr: "::mlir::SymbolRefAttr",
}

_FLOATS = frozenset(AnyFloatConstr.get_bases() or ())


def parameter_class(constraint: AttrConstraint) -> str:
    """Return the C++ class of a type's or attribute's parameter."""
    bases = constraint.get_bases() or set[type[Attribute]]()
    if len(bases) != 1:
        return "::mlir::Attribute"
    (definition,) = bases
    return _PARAMETERS.get(definition, f"::mlir::{'Type' if is_type(definition) else 'Attribute'}")


def type_constraint(constraint: AttrConstraint, named: Namer) -> str:
    """Return what an operand or result may be."""
    alternatives = _type_alternatives(constraint, named)
    return alternatives[0] if len(alternatives) == 1 else f"AnyTypeOf<[{', '.join(alternatives)}]>"


def attribute_constraint(constraint: AttrConstraint, named: Namer) -> str:
    """Return what an attribute may be."""
    if constraint == FlatSymbolRefAttrConstr:
        return "FlatSymbolRefAttr"
    match constraint:
        case AnyAttr():
            return "AnyAttr"
        case SymbolNameConstraint():
            return "SymbolNameAttr"
        case MessageConstraint():
            return attribute_constraint(constraint.constr, named)
        case ArrayOfConstraint():
            element = element_constraint(constraint.elem_range_constraint)
            return f'TypedArrayAttrBase<{attribute_constraint(element, named)}, "array attribute">'
        case AnyOf():
            parts = [attribute_constraint(part, named) for part in constraint.attr_constrs]
            return f"AnyAttrOf<[{', '.join(dict.fromkeys(parts))}]>"
        case _:
            return _attribute(constraint, named)


def _attribute(constraint: AttrConstraint, named: Namer) -> str:
    (definition,) = constraint.get_bases() or {Attribute}
    if is_type(definition):
        return f"TypeAttrOf<{type_constraint(constraint, named)}>"
    if isinstance(constraint, ParamAttrConstraint):
        type = constraint.param_constrs[-1]
        if definition is builtin.IntegerAttr and type == EqAttrConstraint(builtin.i1):
            return "BoolAttr"
        if definition is builtin.IntegerAttr and isinstance(type, EqAttrConstraint):
            return f"{type_constraint(type, named)}Attr"
        if definition is builtin.FloatAttr and not isinstance(type, AnyAttr):
            return f"{type_constraint(type, named)}Attr"
    name = named(definition) or _ATTRIBUTES.get(definition)
    if name is None:
        raise UnsupportedError(f"TableGen has no name for the attribute {definition.name}")
    return name


def _type_alternatives(constraint: AttrConstraint, named: Namer) -> Sequence[str]:
    match constraint:
        case AnyAttr():
            return ["AnyType"]
        case MessageConstraint():
            return _type_alternatives(constraint.constr, named)
        case TypeVarConstraint():
            return _type_alternatives(constraint.base_constraint, named)
        case VarConstraint():
            return _type_alternatives(constraint.constraint, named)
        case AnyOf():
            return _union(constraint.attr_constrs, named)
        case AllOf():
            known = [part for part in constraint.attr_constrs if not isinstance(part, AnyAttr)]
            parts = [type_constraint(part, named) for part in known]
            return [f"AllOfType<[{', '.join(parts)}]>"] if len(parts) > 1 else parts
        case EqAttrConstraint():
            return [_exact_type(constraint.attr)]
        case ParamAttrConstraint() if constraint.base_attr is builtin.TensorType:
            elements = _type_alternatives(constraint.param_constrs[1], named)
            return [f"RankedTensorOf<[{', '.join(elements)}]>"]
        case BaseAttr():
            return [_type(constraint.attr, named)]
        case _:
            raise UnsupportedError(f"TableGen has no name for the constraint {constraint}")


def _union(constraints: Sequence[AttrConstraint], named: Namer) -> list[str]:
    """Return the alternatives; all the floats together are `AnyFloat`."""
    bases = {part.attr for part in constraints if isinstance(part, BaseAttr)}
    floats = bases >= _FLOATS
    names = ["AnyFloat"] if floats else []
    for part in constraints:
        if not (floats and isinstance(part, BaseAttr) and part.attr in _FLOATS):
            names += _type_alternatives(part, named)
    return list(dict.fromkeys(names))


def _type(definition: type[Attribute], named: Namer) -> str:
    name = named(definition) or _TYPES.get(definition)
    if name is not None:
        return name
    if definition in _FLOATS:
        return f"{definition.name[0].upper()}{definition.name[1:]}".replace("Bf", "BF")
    raise UnsupportedError(f"TableGen has no name for the type {definition.name}")


def _exact_type(type: Attribute) -> str:
    if not isinstance(type, IntegerType):
        raise UnsupportedError(f"TableGen has no name for exactly the type {type}")
    return f"{type}".upper()
