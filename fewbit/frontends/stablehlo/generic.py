"""MLIR's generic text, in which every op looks alike, as the objects of `ops`.

The text comes from an MLIR tool, which has read and verified the user's file before: it is well
formed, and has no aliases. What is not understood here is an error all the same, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fewbit.errors import ParseError
from fewbit.frontends.stablehlo.ops import Block, Function, Module, Op, Source, TensorType, Value

_TOKEN = re.compile(
    r'\s*(?P<token>"(?:[^"\\]|\\.)*"|->|%[\w$.-]+(?:#\d+)?|[@^#!]?[\w$.-]+|\{-#|#-\}|.)', re.DOTALL
)
_OPEN, _CLOSE = "([{<", ")]}>"
_RESOURCE = re.compile(r'([\w.$-]+|"[^"]*"): "0x([0-9A-Fa-f]*)"')
_ALIGNMENT = 4
"""Bytes in front of a resource's data, which say how it is aligned."""


def parse_generic(text: str) -> Module:
    """The functions of a module, and the data that its text has at the end."""
    body, _, tail = text.partition("\n{-#")
    resources = {
        key.strip('"'): bytes.fromhex(data)[_ALIGNMENT:] for key, data in _RESOURCE.findall(tail)
    }
    return Module(_Parser(body).functions(), resources)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.token = ""
        self.values: dict[str, Value] = {}
        self._advance()

    def _advance(self) -> str:
        """The token that was next; the one behind it becomes next."""
        taken = self.token
        match = _TOKEN.match(self.text, self.position)
        self.token = match["token"] if match else ""
        self.position = match.end() if match else len(self.text)
        return taken

    def _take(self, token: str) -> bool:
        if self.token != token:
            return False
        self._advance()
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            line = self.text.count("\n", 0, self.position) + 1
            raise ParseError(f"expected '{token}' in line {line} of the text, not '{self.token}'")

    def _raw(self, ends: str) -> str:
        """The text up to one of `ends` outside of brackets."""
        start = self.position - len(self.token)
        depth = 0
        while self.token and not (depth == 0 and self.token in ends):
            if self.token in _OPEN:
                depth += 1
            elif self.token in _CLOSE:
                depth -= 1
            self._advance()
        return self.text[start : self.position - len(self.token)].strip()

    def functions(self) -> dict[str, Function]:
        functions: dict[str, Function] = {}
        self._expect('"builtin.module"')
        self._skip_to_regions()
        self._expect("(")
        self._expect("{")
        while self.token.startswith('"') or self.token.startswith("%"):
            function = self._function()
            if function is not None:
                functions[function.name] = function
        return functions

    def _skip_to_regions(self) -> None:
        self._expect("(")
        self._expect(")")
        if self._take("<"):
            self._attributes()
            self._expect(">")

    def _function(self) -> Function | None:
        """A function; None for another op of the module, such as a mesh of devices."""
        self.values = {}
        op = self._op()
        if op.name != "func.func" or not op.regions:
            return None
        visibility = op.attributes.get("sym_visibility", '"public"')
        names = re.findall(r'jax\.result_info = "([^"]*)"', op.attributes.get("res_attrs", ""))
        return Function(op.symbol("sym_name"), op.regions[0], visibility != '"private"', names)

    def _op(self) -> Op:
        names: list[tuple[str, int]] = []
        while self.token.startswith("%"):
            name = self._advance()
            names.append((name, int(self._advance()) if self._take(":") else 1))
            self._take(",")
        if names:
            self._expect("=")
        op = Op(self._advance().strip('"'), [], [])
        written = self._parenthesized(self._advance)
        if self._take("["):
            raise ParseError(f"'{op.name}' branches between blocks, which StableHLO does not")
        if self._take("<"):
            op.attributes |= self._attributes()
            self._expect(">")
        if self._take("("):
            while not self._take(")"):
                op.regions.append(self._region())
                self._take(",")
        if self.token == "{":
            self._attributes()  # Of other dialects; an op's own are properties.
        self._expect(":")
        self._parenthesized(lambda: self._raw(",)"))
        self._expect("->")
        several = self.token == "("
        types = self._parenthesized(lambda: self._raw(",)")) if several else [self._type()]
        op.source = self._location()
        op.operands = [self._use(name) for name in written]
        op.results = [Value(TensorType.parse(type) or type) for type in types]
        self._define(names, op.results)
        return op

    def _type(self) -> str:
        """One type; what follows is its location or the next op."""
        start = end = self.position - len(self.token)
        depth = 0
        while self.token:
            word, end = self.token, self.position
            self._advance()
            depth += (word == "<") - (word == ">")
            if depth == 0 and self.token != "<":
                break
        return self.text[start:end].strip()

    def _parenthesized(self, one: Callable[[], str]) -> list[str]:
        self._expect("(")
        items: list[str] = []
        while not self._take(")"):
            items.append(one())
            self._take(",")
        return items

    def _use(self, name: str) -> Value:
        name = name if "#" in name else f"{name}#0"
        if name not in self.values:
            raise ParseError(f"{name} is used before it is defined")
        self.values[name].uses += 1
        return self.values[name]

    def _define(self, names: list[tuple[str, int]], results: list[Value]) -> None:
        rest = iter(results)
        for name, count in names:
            for i in range(count):
                self.values[f"{name}#{i}"] = next(rest)

    def _attributes(self) -> dict[str, str]:
        """`{name = value, flag}`."""
        self._expect("{")
        attributes: dict[str, str] = {}
        while not self._take("}"):
            name = self._advance().strip('"')
            attributes[name] = self._raw(",}") if self._take("=") else "unit"
            self._take(",")
        return attributes

    def _region(self) -> Block:
        self._expect("{")
        block = Block()
        if self.token.startswith("^"):
            self._advance()
            if self.token == "(":
                self._arguments(block)
            self._expect(":")
        while not self._take("}"):
            if self.token.startswith("^"):
                raise ParseError("a region of several blocks, which StableHLO does not have")
            block.ops.append(self._op())
        return block

    def _arguments(self, block: Block) -> None:
        self._expect("(")
        while not self._take(")"):
            name = self._advance()
            self._expect(":")
            type = self._type()
            value = Value(TensorType.parse(type) or type, self._location().path)
            self.values[f"{name}#0"] = value
            block.arguments.append(value)
            self._take(",")

    def _location(self) -> Source:
        if not self._take("loc"):
            return Source()
        self._expect("(")
        text = self._raw(")")
        self._expect(")")
        return source_of(text)


_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"(?!:\d)')


def source_of(location: str) -> Source:
    """The first name in a location, which is the outermost, and the first line of a file."""
    name, file = _NAME.search(location), _FILE.search(location)
    # In `callsite("f"("a.py":1:2) at …)` the name is a function of the user's, not a scope.
    path = "" if name is None or location.startswith("callsite") else name[1]
    if file is None:
        return Source(path)
    return Source(path, file[1], int(file[2]))
