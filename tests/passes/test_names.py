import pytest

from fewbit.errors import UsageError
from fewbit.passes.graph.names import NamePattern


@pytest.mark.parametrize(
    ("pattern", "name", "scope"),
    [
        ("model.layers.1", "model.layers.1", "model.layers.1"),
        ("model.layers.1", "model.layers.1.mlp.fc", "model.layers.1"),
        ("model.layers.1", "model.layers.10", None),
        ("model.layers.1", "model.layers", None),
        ("model", "other.model", None),
        (r"re:model\.layers\.[0-9]+", "model.layers.12.mlp", "model.layers.12"),
        (r"re:.*\.mlp", "model.layers.0.mlp.fc", "model.layers.0.mlp"),
        ("re:.*attn.*", "model.attn.q", "model.attn"),
        ("re:mod", "model", None),
        ("a.b", "aXb", None),
    ],
)
def test_scope(pattern: str, name: str, scope: str | None):
    parsed = NamePattern.parse(pattern)
    assert parsed.scope(name) == scope
    assert parsed.selects(name) == (scope is not None)


def test_pattern_that_matches_nothing_suggests_names():
    with pytest.raises(UsageError, match="matches no name") as caught:
        NamePattern.parse("model.atn").require_match(["model.attn", "model.mlp"], "inline")
    assert caught.value.hint == "names are, for example: model.attn, model.mlp"
    assert caught.value.place.stage == "inline"


def test_pattern_in_a_module_without_names():
    with pytest.raises(UsageError) as caught:
        NamePattern.parse("re:.*").require_match([], "inline")
    assert caught.value.hint == "there are no names"


@pytest.mark.parametrize("text", ["re:(", "re:", ""])
def test_malformed_pattern(text: str):
    with pytest.raises(UsageError):
        NamePattern.parse(text)
