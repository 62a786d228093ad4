"""Options that a class of them declares: checked by name and kind, from Python and as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.targets.cpu.target import CpuOptions
from fewbit.targets.cuda.target import CudaOptions
from fewbit.targets.options import (
    FLAG,
    NAMES,
    PATH,
    SHAPES,
    TEXT,
    TEXTS,
    Options,
    one_of,
    option,
)
from fewbit.targets.registry import make_options
from fewbit.targets.target import Request


@dataclass(frozen=True)
class Some(Options):
    loud: bool = option(FLAG, "Be loud.")
    word: str | None = option(TEXT, "A word.", metavar="WORD", also=("tune",))
    words: tuple[str, ...] = option(TEXTS, "Words.", flag="--word-too")
    several: str | tuple[str, ...] | None = option(NAMES, "Names.")
    shapes: tuple[tuple[int, ...], ...] = option(SHAPES, "Shapes.")
    place: Path | None = option(PATH, "A place.")
    size: str = option(one_of("small", "large"), "A size.", default="small")


def test_what_is_not_given_is_as_declared() -> None:
    assert Some.check({}, "x") == Some()
    assert Some.check({"word": None, "loud": False}, "x") == Some()
    assert (Some().loud, Some().words, Some().size) == (False, (), "small")


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("loud", True, True),
        ("word", "a", "a"),
        ("words", ["a", "b"], ("a", "b")),
        ("several", "a,b", "a,b"),
        ("several", ["a"], ("a",)),
        ("shapes", ["2x3", (4, 5)], ((2, 3), (4, 5))),
        ("place", "here", Path("here")),
        ("size", "large", "large"),
    ],
)
def test_values_are_converted(name: str, given: Any, value: Any) -> None:
    assert getattr(Some.check({name: given}, "x"), name) == value


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("loud", "yes", "true or false"),
        ("loud", 1, "true or false"),
        ("word", 3, "a text"),
        ("words", "abc", "a list of texts"),
        ("words", [1], "a list of texts"),
        ("shapes", ["2by3"], "shapes such as"),
        ("shapes", [(0, 1)], "shapes such as"),
        ("shapes", 4, "shapes such as"),
        ("place", 1, "a path"),
        ("size", "huge", "one of small, large"),
    ],
)
def test_values_of_another_kind_are_refused(name: str, given: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"option '{name}' of 'x' cannot be") as caught:
        Some.check({name: given}, "x")
    assert words in (caught.value.hint or "")


def test_how_they_are_spelled() -> None:
    declared = {each.name: each for each in Some.declared()}
    assert list(declared) == list(Some.names())
    assert declared["loud"].flag == "--loud"
    assert declared["words"].flag == "--word-too"
    assert declared["word"].verbs == ("compile", "tune")


def test_a_request_has_options_of_its_target() -> None:
    given = make_options("cpu", {"profile": True})
    assert given == CpuOptions(profile=True)
    assert CpuOptions.of(Request("cpu", options=given)).profile
    assert CpuOptions.of(Request("cpu")) == CpuOptions()
    with pytest.raises(TypeError, match="another target"):
        CudaOptions.of(Request("cuda", options=given))


def test_keyword_arguments_of_compile_are_checked() -> None:
    with pytest.raises(UsageError, match="option 'profile' of 'cpu' cannot be 'yes'"):
        fewbit.compile("zoo:mlp", "cpu", profile="yes")
    with pytest.raises(UsageError, match="option 'precision' of 'cuda:sm_90' cannot be 'f8'"):
        fewbit.compile("zoo:mlp", "cuda:sm_90", precision="f8")
