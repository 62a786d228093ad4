"""Lists of passes are cut at commas that stand in no brackets and no quotes."""

from __future__ import annotations

import pytest

from fewbit.errors import UsageError
from fewbit.pipeline.spec import name_of, split_specs


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("", []),
        ("cse", ["cse"]),
        ("cse, dce ,\n canonicalize", ["cse", "dce", "canonicalize"]),
        ("func.func(cse,affine-scalrep),cse", ["func.func(cse,affine-scalrep)", "cse"]),
        ("tile{sizes=8,8 to=a,b},cse", ["tile{sizes=8,8 to=a,b}", "cse"]),
        ('place{rules="a,b=npu"},cse', ['place{rules="a,b=npu"}', "cse"]),
    ],
)
def test_lists_are_cut_at_outer_commas(text: str, specs: list[str]) -> None:
    assert split_specs(text) == specs


@pytest.mark.parametrize("text", ["tile{sizes=8", "func.func(cse", 'place{rules="a}'])
def test_what_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has no counterpart"):
        split_specs(text)


def test_the_name_stands_in_front_of_options() -> None:
    assert name_of("tile{sizes=8,8}") == "tile"
    assert name_of("cse") == "cse"
