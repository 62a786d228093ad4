"""Errors say what, where and what to do, and nothing that is not known."""

from __future__ import annotations

import inspect

import pytest

from fewbit import errors
from fewbit.errors import Error, Place

FAMILY = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Error)]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place(), ""),
        (Place(file="net.mlir"), "net.mlir"),
        (Place(file="net.mlir", line=3), "net.mlir:3"),
        (Place(file="net.mlir", line=3, column=7), "net.mlir:3:7"),
        (Place(layer="fc1"), "layer 'fc1'"),
        (
            Place(file="a.mlir", line=1, op="mico.relu", layer="fc1", stage="cse"),
            "a.mlir:1, layer 'fc1', op 'mico.relu', in cse",
        ),
    ],
)
def test_a_place_shows_what_is_known(place: Place, text: str) -> None:
    assert str(place) == text
    assert bool(place) == bool(text)


def test_an_error_shows_place_excerpt_and_hint_in_this_order() -> None:
    error = Error(
        "width 9 does not exist",
        place=Place(file="net.mlir", line=2),
        hint="use 1 to 8",
        excerpt="  !mico.int<9>\n            ^\n",
    )
    assert str(error).splitlines() == [
        "net.mlir:2: width 9 does not exist",
        "  !mico.int<9>",
        "            ^",
        "hint: use 1 to 8",
    ]


def test_an_error_without_a_place_is_just_what() -> None:
    assert str(Error("no luck")) == "no luck"


def test_an_outer_stage_fills_in_only_what_is_unknown() -> None:
    error = Error("no luck", place=Place(line=4)).at(file="net.mlir", line=9, stage="cse")
    assert error.place == Place(file="net.mlir", line=4, stage="cse")


@pytest.mark.parametrize("kind", FAMILY)
def test_every_kind_is_of_the_family_and_takes_the_same_parts(kind: type[Error]) -> None:
    error = kind("no luck", place=Place(op="a.b"), hint="try again")
    assert (error.what, error.hint, error.place.op) == ("no luck", "try again", "a.b")
    assert "error" in error.kind
    assert kind.__doc__
