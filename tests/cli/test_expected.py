"""`// expected-error` comments: where they point, and how they are held against errors."""

from __future__ import annotations

import pytest

from fewbit.cli.expected import Expectation, find_unmet, read_expectations
from fewbit.errors import Error, Place, UsageError

TEXT = """\
a // expected-error {{on this line}}
// expected-error @+2 {{two below}}
// expected-error @below {{one below}}
b
// expected-error @-1 {{one above}}
// expected-error @above {{nearest above}} expected-error @unknown {{no line}}
"""


def test_designators_point_to_lines() -> None:
    assert read_expectations(TEXT, "t.mlir") == [
        Expectation("on this line", 1, 1),
        Expectation("two below", 4, 2),
        Expectation("one below", 4, 3),
        Expectation("one above", 4, 5),
        Expectation("nearest above", 4, 6),
        Expectation("no line", None, 6),
    ]


def test_lines_count_from_the_start_of_the_file() -> None:
    (expectation,) = read_expectations("\n// expected-error @+1 {{x}}\n", "t.mlir", first_line=11)
    assert (expectation.line, expectation.written) == (13, 12)


@pytest.mark.parametrize("kind", ["warning", "note", "remark", "error-re"])
def test_other_kinds_are_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=f"t.mlir:1: expected-{kind} is not understood"):
        read_expectations(f"// expected-{kind} {{{{x}}}}", "t.mlir")


def error(line: int | None, what: str) -> Error:
    return Error(what, place=Place(file="t.mlir", line=line))


def test_expected_errors_that_come_are_fine() -> None:
    expectations = [Expectation("width", 3, 2), Expectation("lost", None, 1)]
    assert (
        find_unmet(expectations, [error(None, "all is lost"), error(3, "bad width 9")], "t.mlir")
        == []
    )


@pytest.mark.parametrize(
    ("came", "complaints"),
    [
        ([], ["t.mlir:2: expected an error with 'width' on line 3, but there was none"]),
        (
            [error(4, "bad width")],
            [
                "t.mlir:4: unexpected error: bad width",
                "t.mlir:2: expected an error with 'width' on line 3, but there was none",
            ],
        ),
        (
            [error(3, "bad width"), error(3, "bad width")],
            ["t.mlir:3: unexpected error: bad width"],
        ),
    ],
)
def test_what_is_missing_or_unexpected_is_told(came: list[Error], complaints: list[str]) -> None:
    found = find_unmet([Expectation("width", 3, 2)], came, "t.mlir")
    assert [str(complaint) for complaint in found] == complaints
