"""Code is typed strictly, and stubs name only what the libraries have.

A name that is misspelled in both would pass for typed code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUBS = ROOT / "typings"
BASIC = re.compile(r"^# pyright: basic\b", re.MULTILINE)
MODULES = [
    "torch_mlir.ir",
    "torch_mlir.execution_engine",
    "torch_mlir.passmanager",
    "torch_mlir.dialects.transform.interpreter",
    "iree.runtime",
    "iree.runtime.flags",
    "iree.runtime._binding",
    "iree.compiler",
    "llvmlite.binding",
    "gguf",
    "gguf.quants",
]


def stub_of(module: str) -> Path:
    path = STUBS.joinpath(*module.split("."))
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


def names(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    """Yield public functions, classes and their members, `Block.arguments`, without protocols."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield f"{within}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from names(node.body, f"{node.name}.")


@pytest.mark.parametrize("module", MODULES)
def test_stubs_name_what_is_there(module: str) -> None:
    library = import_module(module)
    missing: list[str] = []
    for name in names(ast.parse(stub_of(module).read_text()).body):
        owner, _, member = name.rpartition(".")
        if not hasattr(getattr(library, owner) if owner else library, member):
            missing.append(name)
    assert missing == []


def python_files() -> list[Path]:
    folders = ("fewbit", "tests", "tools", "benchmarks")
    return [path for name in folders for path in (ROOT / name).rglob("*.py")]


def test_all_but_a_twentieth_of_the_code_is_typed_strictly() -> None:
    """The files that opt out call libraries that leave too much without types."""
    lines = {path: path.read_text() for path in python_files()}
    loose = [text for text in lines.values() if BASIC.search(text)]
    share = sum(text.count("\n") for text in loose) / sum(t.count("\n") for t in lines.values())
    assert share < 0.05
