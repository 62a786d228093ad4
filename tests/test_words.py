"""Names, docstrings, comments and pages say things as the field says them.

A private word costs every reader. The table below has those that were ours and are unambiguous;
docstrings are sentences, and functions are verbs in the imperative or nouns of what they return.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("fewbit", "tests", "tools", "examples", "benchmarks")

HISTORY = "CHANGELOG.md"
"""It says what things were called then."""

WORDS = {
    r"(of|in|as|from|to) halves\b": "f16",
    r"\bhalf floats?\b": "f16",
    r"\brests? of (the |a )?(tiles?|rows?|vectors?|loops?)\b|\brests\b": "remainder, tail",
    r"\b(lies?|lying) across\b": "transposed",
    r"\bchannels? (are |is |lies? )?innermost\b": "channels-last (NHWC)",
    r"\bchannels? (are |lies? )?apart\b": "channels-first (NCHW)",
    r"\bsums? in registers\b": "accumulators",
    r"\bone number for all lanes\b": "broadcast",
    r"\bbits (are )?counted\b": "popcount",
    r"\bsteps of two\b": "stride 2",
    r"\bleast (processor |CPU )?times?\b": "minimum",
    r"\bsearch(es)? for tiles?\b": "autotuning",
    r"\btrain(ing|ed)? with rounding\b": "quantization-aware training",
    r"\blayers that are no modules\b": "functional layers",
    r"\bmeanings? of (an |the )?ops?\b": "semantics",
    r"\b(matrix|matrices') products?\b": "matmul",
}
"""Private words, and the field's."""

PARTICIPLES = {
    *("made", "turned", "judged", "found", "taken", "shown", "spelled", "told", "kept", "held"),
    *("rounded", "scaled", "shifted", "clamped", "wrapped", "padded", "packed", "squeezed"),
    *(
        "viewed",
        "widened",
        "narrowed",
        "opened",
        "locked",
        "calibrated",
        "sized",
        "numbered",
        "quoted",
    ),
    *(
        "computed",
        "written",
        "recorded",
        "renamed",
        "inferred",
        "changed",
        "moved",
        "reduced",
        "grown",
    ),
    *("decomposed", "stacked", "halved", "collapsed", "expanded", "filled"),
    *("described", "listed", "located", "loaded", "stored", "gathered", "applied", "finished"),
}
"""Functions are not called by these: the imperative says as much."""

CLAUSES = re.compile(r"(Whether|What|How|By|Where|Which|With|As)\b")
"""Docstrings of functions do not begin so: a sentence has a verb, "Return whether …"."""


def python_files() -> list[Path]:
    every = [path for name in FOLDERS for path in sorted((ROOT / name).rglob("*.py"))]
    return [path for path in every if path != Path(__file__)]


def pages() -> list[Path]:
    every = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
    return [path for path in sorted(every) if path.name != HISTORY]


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


PATTERNS = {
    re.compile(words.replace(" ", r"(?:[ \n#]+)"), re.IGNORECASE): instead
    for words, instead in WORDS.items()
}
"""What to write instead of private words; lines may break a phrase."""
ANY = re.compile("|".join(f"(?:{each.pattern})" for each in PATTERNS), re.IGNORECASE)


def private_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each private word, and what to write instead."""
    for pattern, instead in PATTERNS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), f"{match[0]!r}: {instead}"


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield strings and comments of a module, with the lines where they begin."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.start[0], token.string


def documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, those behind fields and constants too."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        for statement in node.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text


def described(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings of functions; properties are described as fields are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            text = ast.get_docstring(node)
            if text and not any("property" in ast.unparse(each) for each in node.decorator_list):
                yield node.body[0].lineno, text


def test_python_is_in_the_words_of_the_field() -> None:
    results = [
        f"{place(path, start + line)}: {what}"
        for path in python_files()
        if ANY.search(path.read_text())
        for start, text in prose(path.read_text())
        for line, what in private_words(text)
    ]
    assert results == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_are_in_the_words_of_the_field(page: Path) -> None:
    results = [f"{place(page, line + 1)}: {what}" for line, what in private_words(page.read_text())]
    assert results == []


def test_docstrings_are_no_fragments_and_functions_no_bare_participles() -> None:
    fragments, bare = list[str](), list[str]()
    suspicious = re.compile(rf'"Of |def _*(?:{"|".join(PARTICIPLES)})_*\(')
    for path in python_files():
        source = path.read_text()
        if not suspicious.search(source):
            continue
        tree = ast.parse(source)
        fragments += [
            f"{place(path, line)}: {text.splitlines()[0]}"
            for line, text in documented(tree)
            if text.startswith("Of ")
        ]
        bare += [
            f"{place(path, node.lineno)}: {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name.strip("_") in PARTICIPLES
        ]
    assert fragments == []
    assert bare == []


def test_docstrings_of_functions_are_sentences() -> None:
    clauses = list[str]()
    suspicious = re.compile(f'"""{CLAUSES.pattern}')
    for path in python_files():
        source = path.read_text()
        if suspicious.search(source):
            clauses += [
                f"{place(path, line)}: {text.splitlines()[0]}"
                for line, text in described(ast.parse(source))
                if CLAUSES.match(text)
            ]
    assert clauses == []


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("an image with channels innermost", "channels-last"),
        ("weights that lie\n# across", "transposed"),
        ("the least CPU time", "minimum"),
    ],
)
def test_private_words_are_seen(text: str, instead: str) -> None:
    ((_, what),) = private_words(text)
    assert instead in what
