"""Models by a call in a text: `timm:create_model('resnet18')`.

Before the colon stands an importable package, behind it a call of something in it. Arguments are
literals, or calls of other things in the package. The text is parsed and never evaluated as Python,
so it can do what the package offers and nothing else.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import PurePath
from types import ModuleType
from typing import Any, NoReturn

from fewbit.errors import UsageError

_TEXT = re.compile(
    r"(?P<package>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<call>[A-Za-z_][\w.]*\(.*\))", re.S
)
EXAMPLE = "timm:create_model('resnet18')"


def is_call(text: str) -> bool:
    """Return whether a text has the form of a call in a package."""
    return _TEXT.fullmatch(text.strip()) is not None


def name_of_call(text: str) -> str:
    """Return what to call the model: by the first word in quotes, as in EXAMPLE, or the callee."""
    match = _TEXT.fullmatch(text.strip())
    assert match is not None
    callee, _, arguments = match["call"].partition("(")
    quoted = re.match(r"""\s*(?P<mark>['"])(?P<word>[^'"]+)(?P=mark)""", arguments)
    return PurePath(quoted["word"]).name if quoted else callee.rpartition(".")[2]


def evaluate_call(text: str) -> Any:
    """Return what the call gives; what it names wrongly, or raises, is a `UsageError`."""
    match = _TEXT.fullmatch(text.strip())
    assert match is not None
    try:
        call = ast.parse(match["call"], mode="eval").body
    except SyntaxError as e:
        _refuse(text, f"is no call: {e.msg}")
    return _Evaluation(text, _load(match["package"])).value(call)


def _load(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except Exception as e:
        if isinstance(e, ImportError) and e.name == package.partition(".")[0]:
            hint = f"is it installed? pip install {e.name}"
            raise UsageError(f"there is no package '{package}'", hint=hint) from e
        raise UsageError(f"'{package}' does not load: {type(e).__name__}: {e}") from e


def _refuse(text: str, why: str) -> NoReturn:
    raise UsageError(f"'{text}' {why}", hint=f"write a call with plain arguments, as {EXAMPLE}")


class _Evaluation:
    """The call, in the names of one package."""

    def __init__(self, text: str, package: ModuleType) -> None:
        self.text = text
        self.package = package

    def value(self, node: ast.expr) -> Any:
        if not isinstance(node, ast.Call):
            return self._literal(node)
        function = self._find(node.func)
        positional = [self.value(argument) for argument in node.args]
        named = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        if len(named) != len(node.keywords):
            _refuse(self.text, "unpacks a mapping")
        try:
            return function(*positional, **named)
        except Exception as e:
            name = ast.unparse(node.func)
            raise UsageError(f"'{name}' fails: {type(e).__name__}: {e}") from e

    def _literal(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except ValueError:
            _refuse(self.text, f"has '{ast.unparse(node)}', which is no literal")

    def _find(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            owner, name = self._find(node.value), node.attr
        elif isinstance(node, ast.Name):
            owner, name = self.package, node.id
        else:
            _refuse(self.text, f"calls '{ast.unparse(node)}', which is no name")
        place = getattr(owner, "__name__", owner)
        try:
            member = None if name.startswith("_") else getattr(owner, name, None)
        except Exception as e:  # packages load their parts when they are asked for
            raise UsageError(f"'{name}' of {place} does not load: {e}") from e
        if member is None:
            raise UsageError(f"there is no '{name}' in {place}")
        return member
