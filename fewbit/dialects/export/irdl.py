"""A dialect as IRDL, which MLIR's tools load at run time: `mlir-opt --irdl-file=FILE`.

IRDL describes structure: how many operands, of which base types, which attributes, how many
blocks. What it cannot say is left out: element types of tensors, types inside of builtin
attributes, attributes that may be absent, traits, custom syntax, and what verifiers compute. A
constraint used twice would mean that both values are equal, so each use gets its own. Two valid
things are still refused: values of different types in one variadic operand or result, for that
same reason, and a terminator of the dialect's own, for want of traits (see `docs/interop.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ArrayOfConstraint, SymbolNameConstraint
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    AttrConstraint,
    AttrSetConstraint,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OpDef,
    OptionalDef,
    ParamAttrConstraint,
    SingleBlockRegionDef,
    TypeVarConstraint,
    VarConstraint,
    VariadicDef,
)
from xdsl.utils.runtime_final import is_runtime_final

from fewbit.dialects.export.definitions import (
    SEGMENT_SIZES,
    accepted_integers,
    attribute_definitions,
    element_constraint,
    is_of,
    is_type,
    mnemonic,
    operation_definitions,
    summary,
)
from fewbit.errors import UnsupportedError

_BUILTIN_NAMES: dict[type[Attribute], str] = {
    builtin.ArrayAttr: "#builtin.array",
    builtin.DenseArrayBase: "#builtin.dense_array",
    builtin.DenseIntOrFPElementsAttr: "#builtin.dense_typed_elements",
    builtin.DictionaryAttr: "#builtin.dictionary",
    builtin.FloatAttr: "#builtin.float",
    builtin.IntegerAttr: "#builtin.integer",
    builtin.StringAttr: "#builtin.string",
    builtin.SymbolRefAttr: "#builtin.symbol_ref",
    builtin.UnitAttr: "#builtin.unit",
    builtin.ComplexType: "!builtin.complex",
    builtin.FunctionType: "!builtin.function",
    builtin.IndexType: "!builtin.index",
    builtin.IntegerType: "!builtin.integer",
    builtin.MemRefType: "!builtin.memref",
    builtin.NoneType: "!builtin.none",
    builtin.TensorType: "!builtin.tensor",
    builtin.TupleType: "!builtin.tuple",
    builtin.UnrankedTensorType: "!builtin.unranked_tensor",
    builtin.VectorType: "!builtin.vector",
}


@dataclass(frozen=True)
class _Term:
    """One constraint op: its text up to the operands, and the constraints that it refers to."""

    op: str
    parts: tuple[_Term, ...] = ()
    brackets: str = "()"
    variable: str | None = None


_ANY = _Term("irdl.any")


def export_irdl(dialect: Dialect) -> str:
    """Return the dialect as the text of one `irdl.dialect`."""
    lines = [
        f"// Generated from the definition of the dialect: fewbit export-dialect {dialect.name}",
        f"irdl.dialect @{dialect.name} {{",
    ]
    for definition in attribute_definitions(dialect):
        lines += ["", *_indent(_attribute(dialect, definition))]
    for definition, op_def in operation_definitions(dialect):
        lines += ["", *_indent(_operation(dialect, definition, op_def))]
    return "\n".join([*lines, "}"]) + "\n"


class _Body:
    """The region of one definition, written constraint by constraint."""

    def __init__(self, dialect: Dialect) -> None:
        self.lines: list[str] = []
        self._dialect = dialect
        self._names: set[str] = set()
        self._variables: dict[str, str] = {}

    def constrain(self, name: str, constraint: AttrConstraint) -> str:
        """Write the constraint and return the value that stands for it."""
        return self.write(name, _term(self._dialect, constraint))

    def write(self, name: str, term: _Term) -> str:
        if term.variable is not None and term.variable in self._variables:
            return self._variables[term.variable]
        parts = [self.write(f"{name}_{i}", part) for i, part in enumerate(term.parts)]
        operands = f"{term.brackets[0]}{', '.join(parts)}{term.brackets[1]}" if parts else ""
        value = self.value(name, term.op + operands)
        if term.variable is not None:
            self._variables[term.variable] = value
        return value

    def value(self, name: str, op: str) -> str:
        unique, count = name, 0
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._names.add(unique)
        self.lines.append(f"%{unique} = {op}")
        return f"%{unique}"


def _attribute(dialect: Dialect, definition: type[ParametrizedAttribute]) -> list[str]:
    body = _Body(dialect)
    integers = accepted_integers(definition)
    parameters: list[str] = []
    for name, parameter in definition.get_irdl_definition().parameters:
        if integers is not None:
            value = body.write(name, _one_of([_equal(integer) for integer in integers]))
        else:
            value = body.constrain(name, parameter.constr)
        parameters.append(f"{name}: {value}")
    if parameters:
        body.lines.append(f"irdl.parameters({', '.join(parameters)})")
    kind = "type" if is_type(definition) else "attribute"
    return _definition(f"irdl.{kind} @{mnemonic(definition)}", summary(definition), body)


def _operation(dialect: Dialect, definition: type[IRDLOperation], op_def: OpDef) -> list[str]:
    if op_def.successors:
        raise UnsupportedError(f"{op_def.name} has successors, which IRDL does not describe")
    body = _Body(dialect)
    for field, entries in (("operands", op_def.operands), ("results", op_def.results)):
        values = [
            f"{name}: {_variadicity(entry)}"
            + body.constrain(name, element_constraint(entry.constr))
            for name, entry in entries
        ]
        if values:
            body.lines.append(f"irdl.{field}({', '.join(values)})")
    attributes = [
        f'"{name}" = {body.constrain(name, entry.constr)}'
        for name, entry in {**op_def.properties, **op_def.attributes}.items()
        if not isinstance(entry, OptionalDef) and name not in SEGMENT_SIZES
    ]
    if attributes:
        body.lines += ["irdl.attributes {", *_indent(_commas(attributes)), "}"]
    _write_regions(body, op_def)
    return _definition(f"irdl.operation @{mnemonic(definition)}", summary(definition), body)


def _write_regions(body: _Body, op_def: OpDef) -> None:
    values: list[str] = []
    for name, region in op_def.regions:
        if isinstance(region, VariadicDef):
            raise UnsupportedError(
                f"{op_def.name} has an optional or variadic region, which IRDL does not describe"
            )
        size = " with size 1" if isinstance(region, SingleBlockRegionDef) else ""
        values.append(f"{name}: {body.value(name, f'irdl.region{size}')}")
    if values:
        body.lines.append(f"irdl.regions({', '.join(values)})")


def _definition(head: str, comment: str, body: _Body) -> list[str]:
    lines = [f"// {comment}"] if comment else []
    return [*lines, f"{head} {{", *_indent(body.lines), "}"] if body.lines else [*lines, head]


def _variadicity(entry: object) -> str:
    if isinstance(entry, OptionalDef):
        return "optional "
    return "variadic " if isinstance(entry, VariadicDef) else ""


def _term(dialect: Dialect, constraint: AttrConstraint) -> _Term:
    match constraint:
        case EqAttrConstraint():
            return _equal(constraint.attr)
        case AttrSetConstraint():
            return _one_of([_equal(a) for a in sorted(constraint.values, key=str)])
        case BaseAttr():
            return _base(dialect, constraint.attr)
        case ParamAttrConstraint():
            return _parametric(dialect, constraint.base_attr, constraint.param_constrs)
        case AnyOf():
            return _one_of([_term(dialect, part) for part in constraint.attr_constrs])
        case AllOf():
            parts = [_term(dialect, part) for part in constraint.attr_constrs]
            known = tuple(dict.fromkeys(part for part in parts if part != _ANY))
            return known[0] if len(known) == 1 else _Term("irdl.all_of", known) if known else _ANY
        case MessageConstraint():
            return _term(dialect, constraint.constr)
        case TypeVarConstraint():
            return _term(dialect, constraint.base_constraint)
        case VarConstraint():
            inner = _term(dialect, constraint.constraint)
            return _Term(inner.op, inner.parts, inner.brackets, constraint.name)
        case SymbolNameConstraint():
            return _base(dialect, builtin.StringAttr)
        case ArrayOfConstraint():
            return _base(dialect, builtin.ArrayAttr)
        case AnyAttr():
            return _ANY
        case _:
            bases = constraint.get_bases()
            return _one_of([_base(dialect, b) for b in _by_name(bases)]) if bases else _ANY


def _equal(attribute: Attribute) -> _Term:
    return _Term(f"irdl.is {attribute}")


def _one_of(terms: Sequence[_Term]) -> _Term:
    different = tuple(dict.fromkeys(terms))
    if _ANY in different:
        return _ANY
    return different[0] if len(different) == 1 else _Term("irdl.any_of", different)


def _base(dialect: Dialect, definition: type[Attribute]) -> _Term:
    if not is_runtime_final(definition):
        return _ANY
    if is_of(dialect, definition):
        return _Term(f"irdl.base @{dialect.name}::@{mnemonic(definition)}")
    name = _BUILTIN_NAMES.get(definition)
    if name is None:
        # Floats, and other dialects' definitions, are called the same in MLIR.
        qualified = definition.name if "." in definition.name else f"builtin.{definition.name}"
        name = f"{'!' if is_type(definition) else '#'}{qualified}"
    return _Term(f'irdl.base "{name}"')


def _parametric(
    dialect: Dialect, definition: type[ParametrizedAttribute], parameters: Sequence[AttrConstraint]
) -> _Term:
    """Return the term of a type with parameters, which IRDL constrains in its own dialect only."""
    if not is_of(dialect, definition):
        return _base(dialect, definition)
    parts = tuple(_term(dialect, parameter) for parameter in parameters)
    return _Term(f"irdl.parametric @{dialect.name}::@{mnemonic(definition)}", parts, "<>")


def _by_name(definitions: set[type[Attribute]]) -> list[type[Attribute]]:
    return sorted(definitions, key=lambda definition: definition.name)


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]


def _commas(lines: Sequence[str]) -> list[str]:
    return [f"{line}," for line in lines[:-1]] + list(lines[-1:])
