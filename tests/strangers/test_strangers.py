"""Models that nobody here chose pass, or are refused with a reason: see docs/coverage.md.

It is the check of `make coverage`, one process for each model. What a model needs and is not
installed is a skip.
"""

from __future__ import annotations

import pytest

from tests.strangers.catalog import STRANGERS
from tests.strangers.check import Kind
from tests.strangers.stranger import Stranger
from tests.strangers.sweep import TIMEOUT_S, check_apart


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.key)
def test_stranger(stranger: Stranger) -> None:
    result = check_apart(stranger)
    if result.kind == Kind.ABSENT:
        pytest.skip(f"not run: {result.reason}")
    if result.kind == Kind.REFUSED:
        pytest.xfail(f"refused: {result.reason}")
    assert result.kind == Kind.PASSED, result.reason
