"""Every pass of ours has a filecheck that shows what it does, and what it leaves alone or refuses.

It has the name of its pass. What must not happen stands under a comment `// Left alone: ...` or
`// Refused: ...`, by which a reader finds it too, and with a line of what is expected instead.
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
CHECKED = re.compile(
    r"^ *// (?!RUN)[A-Z]+(?:-(?:NEXT|SAME|DAG|LABEL|NOT|COUNT-\d+))?: |// expected-error",
    re.MULTILINE,
)


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
    runs, negatives = run_lines(text), NEGATIVE.split(text)[1:]
    unchecked = [each.split("\n")[0].strip() for each in negatives if not is_checked(each)]
    is_run = any(re.search(rf"(?<![\w-]){name}(?![\w-])", line.partition("|")[0]) for line in runs)
    return [
        *([] if is_run else ["no RUN line names the pass"]),
        *([] if max(len(CASE.findall(text)), len(runs)) > 1 else ["it has one case only"]),
        *([] if EXPECTED.search(text) else ["it says of nothing what becomes of it"]),
        *([] if negatives else ["it says of nothing that it is left alone or refused"]),
        *(f"nothing is expected of '{each}'" for each in unchecked),
    ]


def is_checked(text: str) -> bool:
    """Return whether an expectation follows, before the next module of the file."""
    return CHECKED.search(text.partition("\n// -----")[0]) is not None


def test_shortcomings_are_found() -> None:
    text = "// RUN: fewbit-opt %s -p fold-more | filecheck %s\nfunc.func @main() {}\n"
    assert len(shortcomings_of("fold", text)) == 4
    run = "// RUN: fewbit-opt %s -p 'cse,fold{a=1}'\n"
    functions = "func.func @a() {}\nfunc.func private @b() {}\n"
    good = f"// Left alone: y.\n// CHECK: x\n{functions}"
    assert not shortcomings_of("fold", run + good)
    unchecked = f"{good}// Refused: z.\n// -----\n// CHECK: x\n"
    assert shortcomings_of("fold", run + unchecked) == ["nothing is expected of 'z.'"]
