from __future__ import annotations

import pytest

from fewbit.errors import UsageError
from fewbit.targets.registry import OURS, check, find_target, make_options
from fewbit.targets.target import Request


@pytest.mark.parametrize("name", OURS)
def test_every_target_has_stages_and_is_checked(name: str) -> None:
    target = check(Request(name))
    forms = [stage.form for stage in target.default_pipeline.stages]
    assert forms == sorted(forms, key=["xdsl", "upstream", "other"].index)


def test_names() -> None:
    assert find_target("cpu:riscv64") is find_target("cpu")
    with pytest.raises(UsageError, match="no target 'tpu'"):
        find_target("tpu")


def test_stages_and_options_are_checked() -> None:
    with pytest.raises(UsageError, match="no option 'speed'"):
        make_options("cpu", {"speed": 9})
    with pytest.raises(UsageError, match="after 'vm'"):
        check(Request("iree-cpu", passes={"vm": ["cse"]}))
    with pytest.raises(UsageError, match="stages are mico"):
        find_target("cpu").check_stage("vm")
