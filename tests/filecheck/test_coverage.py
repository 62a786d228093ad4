"""Every pass of ours has a filecheck that shows what it does, and what it leaves alone or refuses.

It has the name of its pass. What must not happen stands under a comment `// Left alone: ...` or
`// Refused: ...`, by which a reader finds it too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fewbit.universe import BINDINGS, UNIVERSE
from tests.filecheck.test_filecheck import FILES, run_lines

PASSES = sorted({*UNIVERSE.all_passes, *BINDINGS})
CASE = re.compile(r"^(?:func\.func|llvm\.func|graph\.subgraph) [^{\n]*@", re.MULTILINE)
NEGATIVE = re.compile(r"^ *// (?:Left alone|Refused)[:,]", re.MULTILINE)
EXPECTED = re.compile(r"^// (?!RUN)[A-Z]+(?:-NEXT|-SAME|-DAG|-LABEL|-COUNT-\d+)?: ", re.MULTILINE)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_filecheck(name: str) -> None:
    file = file_of(name)
    assert file is not None, f"write tests/filecheck/passes/{name}.mlir"
    shortcomings = shortcomings_of(name, file.read_text(encoding="utf-8"))
    assert not shortcomings, f"{file.name}: {'; '.join(shortcomings)}"


def file_of(name: str) -> Path | None:
    return next((file for file in FILES if file.name == f"{name}.mlir"), None)


def shortcomings_of(name: str, text: str) -> list[str]:
    """Return what a filecheck of a pass lacks."""
    runs = run_lines(text)
    is_run = any(re.search(rf"(?<![\w-]){name}(?![\w-])", line.partition("|")[0]) for line in runs)
    return [
        *([] if is_run else ["no RUN line names the pass"]),
        *([] if max(len(CASE.findall(text)), len(runs)) > 1 else ["it has one case only"]),
        *([] if EXPECTED.search(text) else ["it says of nothing what becomes of it"]),
        *([] if NEGATIVE.search(text) else ["it says of nothing that it is left alone or refused"]),
    ]


def test_shortcomings_are_found() -> None:
    text = "// RUN: fewbit-opt %s -p fold-more | filecheck %s\nfunc.func @main() {}\n"
    assert len(shortcomings_of("fold", text)) == 4
    good = "// CHECK: x\n// Left alone: y\nfunc.func @a() {}\nfunc.func private @b() {}\n"
    assert not shortcomings_of("fold", f"// RUN: fewbit-opt %s -p 'cse,fold{{a=1}}'\n{good}")
