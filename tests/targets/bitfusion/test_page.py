"""The pages on BitFusion and on cycles are true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.targets.bitfusion.accelerator import MICO
from fewbit.targets.bitfusion.blocks import Block, make_block
from tests.test_docs import blocks

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["bitfusion.md", "cycles.md"])
def test_python_of_the_page_runs(page: str) -> None:
    (code,) = blocks(DOCS / page, "python")
    exec(compile(code, page, "exec"), {})


def test_the_block_that_is_shown_is_made() -> None:
    (text,) = blocks(DOCS / "bitfusion.md", "json")
    shown = Block.model_validate(json.loads(text))
    bits = shown.act_bits, shown.weight_bits
    made = make_block(shown.layer, shown.shape, shown.groups, bits, shown.unfolded, MICO)
    assert made == shown
