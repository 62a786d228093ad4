"""Stubs that are alike: compiled once where they are many, and called by every name."""

from __future__ import annotations

import pytest

from fewbit.codegen.stubs import SHARED_FROM, Stub, share_alike
from fewbit.llvm.function import Prototype
from fewbit.toolchain.objects import parse_ir

OUTSIDE = Prototype.of("outside", "void", "ptr", "i64", "i64")


def write_stub(name: str, number: int = 1) -> Stub:
    stub = Stub(name, [])
    stub.call(OUTSIDE, stub.integers([number, 2]), stub.thread, stub.threads)
    return stub


@pytest.mark.parametrize("count", [SHARED_FROM - 1, SHARED_FROM, SHARED_FROM + 3])
def test_many_that_are_alike_share_one(count: int) -> None:
    names = [f"kernel.{i:03}_layer_{i}" for i in range(count)]
    other = write_stub("kernel.999_head", number=7)
    text = "\n".join([OUTSIDE.declaration(), *share_alike([*map(write_stub, names), other])])
    module = parse_ir(text)
    assert {f.name for f in module.functions if not f.is_declaration} == {*names, "kernel.999_head"}
    shared = count >= SHARED_FROM
    assert text.count("call void @outside") == (1 if shared else count) + 1
    assert text.count(f"call void @{names[0]}(") == (count - 1 if shared else 0)
    assert text.count("noinline") == (1 if shared else 0)
