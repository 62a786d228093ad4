"""A dialect as TableGen (ODS), from which MLIR generates C++ classes.

Constraints, traits and documentation are those of the xDSL definitions. What is code there is
declared here and left to C++: verifiers (`hasVerifier`), and methods of interfaces. Ops keep
MLIR's generic syntax; types and attributes have the syntax that IRDL gives them too.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl import traits
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import (
    AttrOrPropDef,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    IRDLOption,
    OpDef,
    OperandDef,
    OptionalDef,
    RegionDef,
    ResultDef,
    SingleBlockRegionDef,
    VariadicDef,
)

from fewbit.dialects.export.definitions import (
    SEGMENT_SIZES,
    accepted_integers,
    attribute_definitions,
    description,
    element_constraint,
    has_own_rules,
    is_of,
    is_type,
    mnemonic,
    operation_definitions,
    summary,
)
from fewbit.dialects.export.tablegen_constraints import (
    attribute_constraint,
    parameter_class,
    type_constraint,
)
from fewbit.dialects.traits import Property
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

_TRAITS: dict[type[traits.OpTrait], str] = {
    traits.Pure: "Pure",
    traits.NoMemoryEffect: "NoMemoryEffect",
    traits.AlwaysSpeculatable: "AlwaysSpeculatable",
    traits.RecursiveMemoryEffect: "RecursiveMemoryEffects",
    traits.RecursivelySpeculatable: "RecursivelySpeculatable",
    traits.SameOperandsAndResultType: "SameOperandsAndResultType",
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

_CODE = (
    traits.HasCanonicalizationPatternsTrait,
    traits.HasFolder,
    traits.HasShapeInferencePatternsTrait,
    Property,
)
"""Traits that rewrites in Python stand for or ask for, which C++ has no use for."""

_OPTIONS: dict[type[IRDLOption], str] = {
    AttrSizedOperandSegments: "AttrSizedOperandSegments",
    AttrSizedResultSegments: "AttrSizedResultSegments",
}


def export_tablegen(dialect: Dialect) -> str:
    """Return the dialect as one `.td` file."""
    writer = _Writer(dialect)
    guard = f"{dialect.name.upper()}_DIALECT_TD"
    sections = [
        [f"// Generated from the definition of the dialect: fewbit export-dialect {dialect.name}"],
        [f"#ifndef {guard}", f"#define {guard}"],
        [f'include "{name}"' for name in INCLUDES],
        *writer.bases(),
        *(writer.attribute(definition) for definition in attribute_definitions(dialect)),
        *(writer.operation(*definitions) for definitions in operation_definitions(dialect)),
        [f"#endif // {guard}"],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._prefix = PREFIXES.get(dialect.name, dialect.name.capitalize())

    def bases(self) -> list[list[str]]:
        name, prefix = self._dialect.name, self._prefix
        dialect = [
            f'let name = "{name}";',
            f'let cppNamespace = "::mlir::{name}";',
            "let useDefaultTypePrinterParser = 1;",
            "let useDefaultAttributePrinterParser = 1;",
        ]
        sections = [_record(f"def {prefix}_Dialect : Dialect", dialect)]
        for kind in ("Type", "Attr"):
            head = f"class {prefix}_{kind}<string name, string word>"
            base = f"{kind}Def<{prefix}_Dialect, name>"
            sections.append(_record(f"{head} : {base}", ["let mnemonic = word;"]))
        head = f"class {prefix}_Op<string word, list<Trait> traits>"
        sections.append([f"{head} : Op<{prefix}_Dialect, word, traits>;"])
        return sections

    def attribute(self, definition: type[ParametrizedAttribute]) -> list[str]:
        kind = "Type" if is_type(definition) else "Attr"
        parameters = {
            name: parameter_class(parameter.constr)
            for name, parameter in definition.get_irdl_definition().parameters
        }
        lines = _documentation(definition)
        if parameters:
            fields = ", ".join(f'"{cpp}":${name}' for name, cpp in parameters.items())
            shown = " `,` ".join(f"${name}" for name in parameters)
            lines.append(f"let parameters = (ins {fields});")
            lines.append(f'let assemblyFormat = "`<` {shown} `>`";')
        lines += _integer_verifier(definition)
        name = definition.__name__.removesuffix(kind)
        base = f'{self._prefix}_{kind}<"{name}", "{mnemonic(definition)}">'
        return _record(f"def {self._prefix}_{definition.__name__} : {base}", lines)

    def operation(self, definition: type[IRDLOperation], op_def: OpDef) -> list[str]:
        try:
            return self._operation(definition, op_def)
        except UnsupportedError as e:
            raise e.at(op=op_def.name) from e

    def _operation(self, definition: type[IRDLOperation], op_def: OpDef) -> list[str]:
        if op_def.successors:
            raise UnsupportedError(f"{op_def.name} has successors, which are not exported")
        lines = _documentation(definition)
        attributes = [
            self._attribute(name, entry)
            for name, entry in {**op_def.properties, **op_def.attributes}.items()
            if name not in SEGMENT_SIZES
        ]
        operands = [self._values(name, entry) for name, entry in op_def.operands]
        results = [self._values(name, entry) for name, entry in op_def.results]
        regions = [_region(op_def, name, region) for name, region in op_def.regions]
        lines += _dag("arguments", "ins", [*operands, *attributes])
        lines += _dag("results", "outs", results)
        lines += _dag("regions", "region", regions)
        if has_own_rules(definition):
            lines.append("let hasVerifier = 1;")
        base = f'{self._prefix}_Op<"{mnemonic(definition)}", [{", ".join(_traits(op_def))}]>'
        return _record(f"def {self._prefix}_{definition.__name__} : {base}", lines)

    def _values(self, name: str, entry: OperandDef | ResultDef) -> str:
        constraint = type_constraint(element_constraint(entry.constr), self._named)
        if isinstance(entry, OptionalDef):
            return f"Optional<{constraint}>:${name}"
        if isinstance(entry, VariadicDef):
            return f"Variadic<{constraint}>:${name}"
        return f"{constraint}:${name}"

    def _attribute(self, name: str, entry: AttrOrPropDef) -> str:
        constraint = attribute_constraint(entry.constr, self._named)
        optional = isinstance(entry, OptionalDef)
        return f"OptionalAttr<{constraint}>:${name}" if optional else f"{constraint}:${name}"

    def _named(self, definition: type[Attribute]) -> str | None:
        ours = is_of(self._dialect, definition)
        return f"{self._prefix}_{definition.__name__}" if ours else None


def _traits(op_def: OpDef) -> list[str]:
    """Return the names of traits in alphabetical order: the definition holds them in none."""
    exported = (trait for trait in op_def.traits.traits if not isinstance(trait, _CODE))
    names = {_trait(op_def, trait) for trait in exported}
    names |= {_OPTIONS[type(option)] for option in op_def.options if type(option) in _OPTIONS}
    return sorted(names)


def _trait(op_def: OpDef, trait: traits.OpTrait) -> str:
    if isinstance(trait, traits.HasParent):
        parents = ", ".join(f'"{parent.__name__}"' for parent in trait.op_types)
        return f"ParentOneOf<[{parents}]>"
    known = next((_TRAITS[base] for base in type(trait).__mro__ if base in _TRAITS), None)
    if known is None:
        raise UnsupportedError(f"{op_def.name} has the trait {trait}, which is not exported")
    return known


def _region(op_def: OpDef, name: str, region: RegionDef) -> str:
    if isinstance(region, VariadicDef):
        raise UnsupportedError(f"{op_def.name} has an optional or variadic region")
    size = "SizedRegion<1>" if isinstance(region, SingleBlockRegionDef) else "AnyRegion"
    return f"{size}:${name}"


def _integer_verifier(definition: type[ParametrizedAttribute]) -> list[str]:
    """Return the verifier of a definition that takes a range of integers."""
    integers = accepted_integers(definition)
    if integers is None:
        return []
    values = [integer.value.data for integer in integers]
    if values != list(range(values[0], values[-1] + 1)):
        raise UnsupportedError(f"{definition.name} accepts {values}, which are not one range")
    (name, _), *_ = definition.get_irdl_definition().parameters
    wrong = f"{name}.getInt() < {values[0]} || {name}.getInt() > {values[-1]}"
    message = f"{definition.name} takes {values[0]} to {values[-1]}"
    return [
        "let genVerifyDecl = 1;",
        "let extraClassDefinition = [{",
        "  ::llvm::LogicalResult $cppClass::verify(",
        "      ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,",
        f"      ::mlir::IntegerAttr {name}) {{",
        f"    if ({wrong})",
        f'      return emitError() << "{message}";',
        "    return ::llvm::success();",
        "  }",
        "}];",
    ]


def _documentation(definition: type) -> list[str]:
    lines: list[str] = []
    if text := summary(definition):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'let summary = "{escaped}";')
    if text := description(definition):
        lines += ["let description = [{", *_indent(text.split("\n")), "}];"]
    return lines


def _dag(field: str, operator: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    *most, last = entries
    return [f"let {field} = ({operator}", *_indent([*(f"{e}," for e in most), last]), ");"]


def _record(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {{", *_indent(lines), "}"] if lines else [f"{head};"]


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]
