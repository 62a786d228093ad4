from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import UsageError
from fewbit.frontends.frontend import Given


def test_inputs_by_name_have_no_order() -> None:
    x = np.ones(2)
    assert Given([x]).inputs_in_order == [x]
    with pytest.raises(UsageError, match="by name"):
        _ = Given({"x": x}).inputs_in_order
