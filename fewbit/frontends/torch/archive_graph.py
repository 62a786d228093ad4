"""What texts in an exported graph may say.

torch makes Python of them: names stand in the code that it generates and executes, expressions of
sizes go through `eval`, a target may be any function that can be reached from `torch`, and the
structure of inputs names modules to import. Each field of the graph that holds such a text is
listed here with its rule, and a text that breaks it is refused before torch sees the graph.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from torch._export.serde import schema, serialize
from torch._ops import HigherOrderOperator, OpOverload

from fewbit.errors import UnsupportedError

_serialize: Any = serialize  # it is half typed

FILE_OPS = ("aten::save", "aten::from_file")
"""Ops that write or map the file that an argument names."""
FUNCTIONS = frozenset({
    "Abs", "Add", "And", "CeilDiv", "CeilToInt", "CleanDiv", "Equality", "ExprCondPair", "FloatPow",
    "FloatTrueDiv", "FloorDiv", "FloorToInt", "GreaterThan", "Identity", "IntTrueDiv", "Integer",
    "IsNonOverlappingAndDenseIndicator", "LShift", "LessThan", "Max", "Min", "Mod",
    "ModularIndexing", "Mul", "Not", "Or", "Piecewise", "Pow", "PowByNatural", "PythonMod",
    "RShift", "Rational", "RoundDecimal", "RoundToInt", "StrictGreaterThan", "StrictLessThan",
    "ToFloat", "TruncToFloat", "TruncToInt", "Unequality", "Where", "ceiling", "floor",
})  # fmt: skip
"""What expressions of sizes may call."""
VALUES = ("true", "false", "oo", "int_oo")
POWERS = ("Pow", "PowByNatural", "FloatPow")
LARGEST_POWER = 64
LONGEST_EXPRESSION = 20_000
FLOAT = re.compile(r"[-+.\deE]+|[-+]?(inf|nan)")


def check_graph(program: schema.ExportedProgram) -> None:
    """Refuse what could run code. Conditions on inputs, which are Python texts, are left out."""
    program.guards_code = []
    for record in _records(program):
        rules = RULES.get(record.__class__, {})
        for field in fields(record):
            # A union has one of its fields; to ask for another is an error.
            value = getattr(record, field.name, None)
            check = rules.get(field.name, _is_anything if "str" in str(field.type) else _is_no_text)
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            for item in items:
                if item is not None and not check(item):
                    raise _refusal(item, field.name, record)


def _refusal(item: Any, field: str, record: Any) -> UnsupportedError:
    return UnsupportedError(
        f"the exported graph has {str(item)[:60]!r} as {field} of a {type(record).__name__}, which "
        "torch.export does not write",
        hint="export the model again; an archive from elsewhere may be meant to run code here",
    )


def _records(value: Any) -> Iterator[Any]:
    """This value and all below it that have fields."""
    if isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _records(item)
    elif isinstance(value, dict):
        yield from _records(list(cast("dict[Any, Any]", value).values()))
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _records(getattr(value, field.name, None))


def _is_anything(_: Any) -> bool:
    return True


def _is_no_text(value: Any) -> bool:
    """For numbers: torch makes expressions of them, too."""
    return not isinstance(value, str)


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier()


def _is_name_or_empty(text: Any) -> bool:
    return text == "" or _is_name(text)


def _is_path(text: Any) -> bool:
    """Such names stand between quotes in generated code."""
    return isinstance(text, str) and text.isprintable() and not set(text) & set("'\"\\")


def _is_target(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    target: Any = _serialize.GraphModuleDeserializer().deserialize_operator(text)
    if isinstance(target, OpOverload):
        return cast(Any, target)._schema.name not in FILE_OPS
    if isinstance(target, HigherOrderOperator):
        return True
    return callable(target) and target in _serialize._SYM_OPS


def _is_expression(text: Any) -> bool:
    """Return whether it is calls of known functions, down to symbols and numbers."""
    if not isinstance(text, str) or len(text) > LONGEST_EXPRESSION or not _is_line(text):
        return False
    try:
        return _is_call(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_line(text: str) -> bool:
    """Comments and line ends are not what they seem once sympy has rewritten a text."""
    return text.isprintable() and "#" not in text


def _is_call(node: ast.AST) -> bool:
    match node:
        case ast.Name(name):
            return name in VALUES
        case ast.Call(ast.Name("Symbol"), [ast.Constant(str(name))], keywords):
            return name.isidentifier() and all(map(_is_assumption, keywords))
        case ast.Call(ast.Name("Float"), [ast.Constant(str(digits))], keywords):
            return bool(FLOAT.fullmatch(digits)) and all(map(_is_assumption, keywords))
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
            if name in POWERS and not _is_small(arguments[-1]):
                return False
            return all(map(_is_call, arguments))
        case _:
            return _is_number(node)


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)


def _is_assumption(keyword: ast.keyword) -> bool:
    return keyword.arg is not None and _is_number(keyword.value)


def _is_small(power: ast.AST) -> bool:
    numbers = [node.value for node in ast.walk(power) if isinstance(node, ast.Constant)]
    calls = [node for node in ast.walk(power) if isinstance(node, ast.Call)]
    return len(calls) == 1 and all(isinstance(n, int) and n <= LARGEST_POWER for n in numbers)


def _is_structure(text: Any) -> bool:
    """Return whether it is a tree of containers that names nothing to import."""
    try:
        return _is_plain_tree(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        return False


def _is_plain_tree(tree: Any) -> bool:
    if isinstance(tree, list):
        return all(map(_is_plain_tree, cast("list[Any]", tree)))
    if not isinstance(tree, dict):
        return not isinstance(tree, str) or _is_path(tree)
    entries = cast("dict[Any, Any]", tree)
    if "__enum__" in entries or "default_factory_module" in entries:
        return False
    context = entries.get("context")
    if isinstance(context, str):
        context = json.loads(context)
    others = [value for key, value in entries.items() if key != "context"]
    return all(map(_is_path, entries)) and _is_plain_tree(context) and _is_plain_tree(others)


RULES: dict[type, dict[str, Callable[[Any], bool]]] = {
    schema.TensorArgument: {"name": _is_name},
    schema.TokenArgument: {"name": _is_name},
    schema.GraphArgument: {"name": _is_name},
    schema.CustomObjArgument: {"name": _is_name, "class_fqn": _is_path},
    schema.SymIntArgument: {"as_name": _is_name},
    schema.SymFloatArgument: {"as_name": _is_name},
    schema.SymBoolArgument: {"as_name": _is_name},
    schema.InputToConstantInputSpec: {"name": _is_name},
    schema.NamedArgument: {"name": _is_name_or_empty},
    schema.Node: {"name": _is_name, "target": _is_target},
    schema.Argument: {"as_operator": _is_target},
    schema.SymExpr: {"expr_str": _is_expression},
    schema.InputToParameterSpec: {"parameter_name": _is_path},
    schema.InputToBufferSpec: {"buffer_name": _is_path},
    schema.InputToTensorConstantSpec: {"tensor_constant_name": _is_path},
    schema.InputToCustomObjSpec: {"custom_obj_name": _is_path},
    schema.BufferMutationSpec: {"buffer_name": _is_path},
    schema.ParameterMutationSpec: {"parameter_name": _is_path},
    schema.GradientToParameterSpec: {"parameter_name": _is_path},
    schema.GradientToUserInputSpec: {"user_input_name": _is_path},
    schema.UserInputMutationSpec: {"user_input_name": _is_path},
    schema.ModuleCallSignature: {
        "in_spec": _is_structure,
        "out_spec": _is_structure,
        "forward_arg_names": _is_name,
    },
    schema.ModuleCallEntry: {"fqn": _is_path},
}
