"""A dialect as TableGen (ODS), from which MLIR generates C++ classes.

Constraints, traits and documentation are those of the xDSL definitions. What is code there is
declared here and left to C++: verifiers (`hasVerifier`), and methods of interfaces. Ops keep
MLIR's generic syntax; types and attributes have the syntax that IRDL gives them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl import traits
from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    ArrayOfConstraint,
    FlatSymbolRefAttrConstr,
    SymbolNameConstraint,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    AttrConstraint,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
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

from fewbit.dialects.export.definitions import (
    accepted_integers,
    attribute_definitions,
    description,
    element_constraint,
    is_of,
    is_type,
    mnemonic,
    operation_definitions,
    summary,
)
from fewbit.dialects.export.irdl import SEGMENT_SIZES
from fewbit.errors import UnsupportedError

PREFIXES = {"mico": "MiCo"}
"""How a dialect's name is spelt in C++, where it is not just capitalized."""

INCLUDES = (
    "mlir/IR/AttrTypeBase.td",
    "mlir/IR/OpBase.td",
    "mlir/IR/SymbolInterfaces.td",
    "mlir/Interfaces/CallInterfaces.td",
    "mlir/Interfaces/ControlFlowInterfaces.td",
    "mlir/Interfaces/SideEffectInterfaces.td",
)

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

_TRAITS: dict[type[traits.OpTrait], str] = {
    traits.Pure: "Pure",
    traits.Commutative: "Commutative",
    traits.ConstantLike: "ConstantLike",
    traits.IsTerminator: "Terminator",
    traits.ReturnLike: "ReturnLike",
    traits.NoTerminator: "NoTerminator",
    traits.IsolatedFromAbove: "IsolatedFromAbove",
    traits.SymbolTable: "SymbolTable",
    traits.SymbolOpInterface: "Symbol",
    traits.SymbolUserOpInterface: "DeclareOpInterfaceMethods<SymbolUserOpInterface>",
    traits.CallableOpInterface: "DeclareOpInterfaceMethods<CallableOpInterface>",
}

_FLOATS = frozenset(AnyFloatConstr.get_bases() or ())


def export_tablegen(dialect: Dialect) -> str:
    """The dialect as one `.td` file."""
    writer = _Writer(dialect)
    sections = [
        [f"// Generated from the definition of the dialect: fewbit export-dialect {dialect.name}"],
        [f"#ifndef {writer.guard}", f"#define {writer.guard}"],
        [f'include "{name}"' for name in INCLUDES],
        writer.bases(),
        *(writer.attribute(definition) for definition in attribute_definitions(dialect)),
        *(writer.operation(*definitions) for definitions in operation_definitions(dialect)),
        [f"#endif // {writer.guard}"],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._prefix = PREFIXES.get(dialect.name, dialect.name.capitalize())
        self.guard = f"{dialect.name.upper()}_DIALECT_TD"

    def bases(self) -> list[str]:
        name, prefix = self._dialect.name, self._prefix
        return [
            f"def {prefix}_Dialect : Dialect {{",
            f'  let name = "{name}";',
            f'  let cppNamespace = "::mlir::{name}";',
            "  let useDefaultTypePrinterParser = 1;",
            "  let useDefaultAttributePrinterParser = 1;",
            "}",
            "",
            f"class {prefix}_Type<string name, string typeMnemonic>",
            f"    : TypeDef<{prefix}_Dialect, name> {{",
            "  let mnemonic = typeMnemonic;",
            "}",
            "",
            f"class {prefix}_Attr<string name, string attrMnemonic>",
            f"    : AttrDef<{prefix}_Dialect, name> {{",
            "  let mnemonic = attrMnemonic;",
            "}",
            "",
            f"class {prefix}_Op<string mnemonic, list<Trait> traits = []>",
            f"    : Op<{prefix}_Dialect, mnemonic, traits>;",
        ]

    def attribute(self, definition: type[ParametrizedAttribute]) -> list[str]:
        kind = "Type" if is_type(definition) else "Attr"
        name = definition.__name__.removesuffix(kind)
        head = f'{self._prefix}_{kind}<"{name}", "{mnemonic(definition)}">'
        parameters = [
            (field, self._parameter(parameter.constr))
            for field, parameter in definition.get_irdl_definition().parameters
        ]
        lines = _documentation(definition)
        if parameters:
            fields = ", ".join(f'"{cpp}":${field}' for field, cpp in parameters)
            shown = " `,` ".join(f"${field}" for field, _ in parameters)
            lines.append(f"let parameters = (ins {fields});")
            lines.append(f'let assemblyFormat = "`<` {shown} `>`";')
        lines += _integer_verifier(definition)
        return [f"def {self._named(definition)} : {head} {{", *_indented(lines), "}"]

    def operation(self, definition: type[IRDLOperation], op_def: OpDef) -> list[str]:
        listed, unknown = self._traits(op_def)
        lines = _documentation(definition)
        lines += [f"// The trait {name} has no counterpart." for name in unknown]
        operands = [self._values(name, entry) for name, entry in op_def.operands]
        attributes = [
            self._attribute_argument(name, entry.constr, isinstance(entry, OptionalDef))
            for name, entry in {**op_def.properties, **op_def.attributes}.items()
            if name not in SEGMENT_SIZES
        ]
        results = [self._values(name, entry) for name, entry in op_def.results]
        regions = [_region(op_def, name, region) for name, region in op_def.regions]
        lines += _dag("arguments", "ins", [*operands, *attributes])
        lines += _dag("results", "outs", results)
        lines += _dag("regions", "region", regions)
        if definition.verify_ is not Operation.verify_:
            lines.append("let hasVerifier = 1;")
        name = f"{self._prefix}_{definition.__name__}"
        head = f'{self._prefix}_Op<"{mnemonic(definition)}", [{", ".join(listed)}]>'
        return [f"def {name} : {head} {{", *_indented(lines), "}"]

    def _named(self, definition: type[Attribute]) -> str:
        return f"{self._prefix}_{definition.__name__}"

    def _traits(self, op_def: OpDef) -> tuple[list[str], list[str]]:
        listed: set[str] = set()
        unknown: set[str] = set()
        for trait in op_def.traits.traits:
            known = next((_TRAITS[c] for c in type(trait).__mro__ if c in _TRAITS), None)
            if isinstance(trait, traits.HasParent):
                parents = ", ".join(f'"{parent.__name__}"' for parent in trait.op_types)
                listed.add(f"ParentOneOf<[{parents}]>")
            elif known is not None:
                listed.add(known)
            else:
                unknown.add(type(trait).__name__)
        for option in op_def.options:
            if isinstance(option, AttrSizedOperandSegments):
                listed.add("AttrSizedOperandSegments")
            if isinstance(option, AttrSizedResultSegments):
                listed.add("AttrSizedResultSegments")
        return sorted(listed), sorted(unknown)

    def _values(self, name: str, entry: object) -> str:
        constraint = self._type(element_constraint(entry.constr))  # pyright: ignore
        if isinstance(entry, OptionalDef):
            constraint = f"Optional<{constraint}>"
        elif isinstance(entry, VariadicDef):
            constraint = f"Variadic<{constraint}>"
        return f"{constraint}:${name}"

    def _attribute_argument(self, name: str, constraint: AttrConstraint, optional: bool) -> str:
        text = self._attribute(constraint)
        return f"OptionalAttr<{text}>:${name}" if optional else f"{text}:${name}"

    def _parameter(self, constraint: AttrConstraint) -> str:
        bases = constraint.get_bases() or set()
        if len(bases) != 1:
            return "::mlir::Attribute"
        (definition,) = bases
        default = "::mlir::Type" if is_type(definition) else "::mlir::Attribute"
        return _PARAMETERS.get(definition, default)
