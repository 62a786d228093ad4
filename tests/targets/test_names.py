"""Command line, searches and benchmarks know no target by name: they ask the registry.

What a target names as its own, by place, may say which one it is for: its tuner, its benchmarks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fewbit.targets.registry import OURS, all_targets

ROOT = Path(__file__).parents[2]
PACKAGES = ("base", "bench", "cli", "tune")
FOREIGN = ("fewbit/bench/peers",)
"""Other tools, which have names of their own for devices."""
NAMES = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, OURS))})(?![\w-])")


def named_by_targets() -> set[str]:
    """Modules, and packages below those of `PACKAGES`, that targets name as their own."""
    places = {each.tuner for each in all_targets() if each.tuner is not None}
    places |= {bench.place for target in all_targets() for bench in target.benches}
    return {"/".join(place.partition(":")[0].split(".")[:3]) for place in places}


OWN = named_by_targets()


def files() -> list[Path]:
    found = (path for name in PACKAGES for path in (ROOT / "fewbit" / name).rglob("*.py"))
    return sorted(path for path in found if not is_exempt(path.relative_to(ROOT).as_posix()))


def is_exempt(path: str) -> bool:
    return any(path == f"{own}.py" or path.startswith(f"{own}/") for own in (*OWN, *FOREIGN))


def mentions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names of targets in texts that are no docstrings, and imports of their packages."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    packages = {place.rpartition(".target:")[0] for place in OURS.values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            if found := NAMES.search(node.value):
                yield node.lineno, found[0]
        elif isinstance(node, ast.ImportFrom) and is_within(f"{node.module}.", packages):
            yield node.lineno, str(node.module)


def is_within(module: str, packages: set[str]) -> bool:
    return any(module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_target_is_known_by_name(path: Path) -> None:
    assert list(mentions(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_what_targets_name_is_all_that_is_exempt() -> None:
    assert {"fewbit/tune/cpu", "fewbit/tune/cuda", "fewbit/tune/iree", "fewbit/bench/gpu"} == OWN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('if target == "cpu": ...', [(1, "cpu")]),
        ('f"-t cuda:{arch}"', [(1, "cuda")]),
        ("from fewbit.targets.iree.raw import is_raw_mlir", [(1, "fewbit.targets.iree.raw")]),
        ('"""A docstring about cpu."""\nx = "cpus", "iree-compile"', []),
    ],
)
def test_mentions_are_found(text: str, found: list[tuple[int, str]]) -> None:
    assert list(mentions(ast.parse(text))) == found
