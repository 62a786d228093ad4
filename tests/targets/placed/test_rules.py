"""Rules as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from fewbit.errors import UsageError
from fewbit.targets.placed.rules import parse_rules


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ("conv1=cpu", ["conv1=cpu"]),
        ("layers.0=iree-cuda:sm_90, fc=cpu ", ["layers.0=iree-cuda:sm_90", "fc=cpu"]),
        ("re:layers.[01].*=iree-cpu,re:.*=cpu", ["re:layers.[01].*=iree-cpu", "re:.*=cpu"]),
        ("re:model.layers.*=cuda,.*=cpu", ["re:model.layers.*=cuda", "re:.*=cpu"]),
        ("re:a{1,2}=cpu,b=vexii", ["re:a{1,2}=cpu", "b=vexii"]),
        ("re:(?=a).*=cpu", ["re:(?=a).*=cpu"]),
        (["re:a,b=cpu", "c=vexii"], ["re:a,b=cpu", "c=vexii"]),
        ({"a": "cpu", "b.*": "gemmini:8x8"}, ["a=cpu", "re:b.*=gemmini:8x8"]),
    ],
)
def test_rules_are_read(given: Any, rules: list[str]) -> None:
    assert list(parse_rules(given)) == rules


@pytest.mark.parametrize("given", ["", [], {}, "conv1", "=cpu", "conv1=", "a=cpu,b", {"": "cpu"}])
def test_what_is_no_rule_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"no rule says|is not a placement rule") as caught:
        parse_rules(given)
    assert caught.value.hint is not None
    assert "PATTERN=TARGET" in caught.value.hint


@pytest.mark.parametrize("given", [3, [3], [("a", "cpu")]])
def test_what_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="are texts"):
        parse_rules(given)
