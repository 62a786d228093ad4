"""Passes by name: found, set up with options, and helpful when asked for wrongly."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from fewbit.cli.passes import describe_passes
from fewbit.errors import Error, UsageError
from fewbit.pipeline.registry import available_passes, parse_passes


@dataclass(frozen=True)
class SplitLoops(ModulePass):
    """Split loops into parts."""

    name = "split-loops"
    parts: int
    name_pattern: str = "*"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


TABLE = {"split-loops": lambda: SplitLoops}


def test_passes_of_fewbit_and_of_xdsl_are_available() -> None:
    assert {"canonicalize", "cse", "dce", "inline", "convert-linalg-to-loops"} <= set(
        available_passes()
    )


def test_options_reach_the_pass() -> None:
    passes = parse_passes(
        'split-loops{parts=2},split-loops{parts=3 name-pattern="a.*"}', known=TABLE
    )
    assert passes == [SplitLoops(2), SplitLoops(3, "a.*")]


def test_no_passes_is_fine() -> None:
    assert parse_passes("", known=TABLE) == []


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("split-lops", "there is no pass 'split-lops'", "did you mean 'split-loops'?"),
        ("xyz", "there is no pass 'xyz'", "--list-passes"),
        ("split-loops{part=1}", "pass 'split-loops' has no option 'part'", "parts: int"),
        ("split-loops", 'requires argument "parts"', "name-pattern: str = *"),
        ("split-loops{parts=x}", "'parts' of pass 'split-loops' takes a whole number, not x", ""),
        ("split-loops{parts=1,2}", "takes a whole number, not 1,2", "parts: int"),
        ("split-loops{parts}", "takes a whole number, not nothing", "parts: int"),
        ("split-loops{parts=1 name-pattern=2}", "'name-pattern' of pass", "name-pattern: str"),
        ("split-loops{parts", "cannot be read", "write it as"),
        ("split-loops parts=1", "cannot be read", "write it as"),
    ],
)
def test_a_mistake_is_a_usage_error_that_helps(text: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_passes(text, known=TABLE)
    assert what in caught.value.what
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_a_list_that_cannot_be_read_shows_where() -> None:
    with pytest.raises(UsageError) as caught:
        parse_passes("split-loops parts", known=TABLE)
    assert caught.value.excerpt is not None
    source, carets, *_ = caught.value.excerpt.splitlines()
    assert source == "split-loops parts"
    assert carets.index("^") == len("split-loops")


def test_a_broken_plugin_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def clash() -> Universe:
        raise ValueError("Duplicate definition of cse")

    monkeypatch.setattr("fewbit.pipeline.registry.multiverse", clash)
    with pytest.raises(Error, match="Duplicate definition of cse"):
        available_passes()


def test_a_pass_that_cannot_be_loaded_is_an_error_with_a_way_out() -> None:
    def missing() -> type[ModulePass]:
        raise ImportError("No module named 'abacus'")

    with pytest.raises(Error, match="pass 'count' cannot be loaded: ImportError"):
        parse_passes("count", known={"count": missing})


def test_the_list_of_passes_begins_with_ours_and_tells_options() -> None:
    text = describe_passes()
    lines = text.splitlines()
    assert lines[0] == "passes of fewbit:"
    assert "passes of xdsl:" in lines
    assert "  scf-for-loop-unroll" in text
    assert not [line for line in lines if "ModulePass(" in line or line != line.rstrip()]
    for name in available_passes():
        assert any(line.split()[:1] == [name] for line in lines), name
