"""A name means a pass of ours or of upstream's by what holds the program."""

from __future__ import annotations

import pytest
from xdsl.passes import ModulePass

from fewbit.errors import UsageError
from fewbit.pipeline.passes import BindingsPass, Conversion, UpstreamPass
from fewbit.pipeline.registry import available_passes, parse_passes
from fewbit.targets.registry import OURS, find_target
from fewbit.targets.target import Request
from fewbit.universe import BINDINGS, UNIVERSE


def test_one_name_is_xdsls_before_and_upstreams_after_the_crossing() -> None:
    before, crossing, after = parse_passes("cse,to-upstream,cse")
    assert isinstance(before, ModulePass)
    assert isinstance(crossing, Conversion)
    assert after == UpstreamPass("cse")


def test_a_pass_that_only_upstream_has_is_found() -> None:
    (found, nested) = parse_passes("one-shot-bufferize,func.func(affine-scalrep)")
    assert found == UpstreamPass("one-shot-bufferize")
    assert nested == UpstreamPass("func.func(affine-scalrep)")


def test_a_name_that_nobody_has() -> None:
    with pytest.raises(UsageError, match="there is no pass 'outline-lops'") as caught:
        parse_passes("outline-lops")
    assert "outline-loops" in (caught.value.hint or "")


@pytest.mark.parametrize("name", sorted(UNIVERSE.all_passes))
def test_the_words_of_a_pass_name_its_class(name: str) -> None:
    kind = UNIVERSE.all_passes[name]()
    assert kind.name == name
    assert kind.__name__ == "".join(word.capitalize() for word in name.split("-"))
    assert kind.__doc__


@pytest.mark.parametrize("name", sorted(BINDINGS))
def test_passes_on_bindings_are_named_alike(name: str) -> None:
    kind = BINDINGS[name]()
    assert kind.name == name
    assert issubclass(kind, BindingsPass | Conversion)
    assert kind.__doc__


@pytest.mark.parametrize("target", OURS)
def test_the_pipeline_of_every_target_is_read_back(target: str) -> None:
    pipeline = find_target(target).pipeline(Request(target))
    passes = parse_passes(pipeline.text)
    assert len(passes) == sum(len(stage.passes) for stage in pipeline.stages)
    assert {p.name for p in passes if not isinstance(p, UpstreamPass)} <= set(available_passes())
