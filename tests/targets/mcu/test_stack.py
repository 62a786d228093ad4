from __future__ import annotations

import pytest

from fewbit.errors import PassError
from fewbit.targets.mcu.stack import frames_of, stack_bytes

ARM = """
\t.type\tnet_run,%function
net_run:
\tpush.w\t{r4, r5, r6, r7, r8, lr}
\tvpush\t{d8, d9}
\tsub\tsp, #24
\tbl\tinner
\tldr\tr4, .LCPI0_0
\tblx\tr4
.LCPI0_0:
\t.long\tother
\t.type\tinner,%function
inner:
\tsub.w\tsp, sp, #256
\tbx\tlr
\t.type\tother,%function
other:
\tpush\t{r4-r7, lr}
\tb\tinner
"""
RISCV = """
\t.type\tnet_run,@function
net_run:
\taddi\tsp, sp, -32
\tcall\tinner
\taddi\tsp, sp, 32
\t.type\tinner,@function
inner:
\taddi\tsp, sp, -48
"""


def test_the_longest_way_of_calls() -> None:
    assert stack_bytes([ARM], "net_run") == (24 + 16 + 24) + 20 + 256
    assert stack_bytes([RISCV], "net_run") == 80


def test_functions_called_by_their_address() -> None:
    assert frames_of(ARM)["net_run"].calls >= {"inner", "other"}


def test_recursion_is_refused() -> None:
    text = ARM.replace("\tbx\tlr", "\tbl\tother")
    with pytest.raises(PassError, match="in a circle"):
        stack_bytes([text], "net_run")
