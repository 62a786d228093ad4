"""Programs of tests are small: they would run on one thread, whatever they are asked for.

Tests of threads ask for `all_threads`, with which every program and every call uses all of them.
"""

from __future__ import annotations

import pytest

from fewbit.cost.cpu.kernel_call import KernelCall
from fewbit.passes.kernel import call_kernels
from fewbit.passes.llvm import translate_to_llvm_ir


@pytest.fixture(autouse=True)
def all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as if threads cost nothing."""

    def most_of(call: KernelCall, most: int) -> int:
        return most

    monkeypatch.setattr(call_kernels, "useful_threads", most_of)
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_SHARING", 1e-30)
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_WAKING", 1e-30)
