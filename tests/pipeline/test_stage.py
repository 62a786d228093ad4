"""Pipelines are values: cut, replaced and printed."""

from __future__ import annotations

import pytest

from fewbit.errors import UsageError
from fewbit.pipeline.stage import Pipeline, Stage

PIPELINE = Pipeline((Stage("a", ("cse",)), Stage("b", ("dce", "cse")), Stage("c")))


def test_pipelines_are_cut_at_stages() -> None:
    assert PIPELINE.until("b").names == ("a", "b")
    assert PIPELINE.after("a").names == ("b", "c")
    assert PIPELINE.after("c").names == ()


def test_stages_are_replaced_by_name_and_the_value_stays() -> None:
    other = PIPELINE.replace_stages(Stage("b", ("inline",)))
    assert other.names == PIPELINE.names
    assert other["b"].passes == ("inline",)
    assert PIPELINE["b"].passes == ("dce", "cse")
    assert PIPELINE.with_passes("a", ()).text == "dce,cse"


def test_the_text_is_all_passes_in_order() -> None:
    assert PIPELINE.text == "cse,dce,cse"


def test_a_stage_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there is no stage 'd'") as caught:
        PIPELINE.until("d")
    assert caught.value.hint == "stages are a, b, c"
