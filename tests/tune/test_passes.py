"""A pass of one's own joins the search by its schedule space alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

import fewbit
from fewbit.dialects.mico import BitLinearOp
from fewbit.tune.passes import pass_choices, tune_passes


@dataclass(frozen=True)
class Mark(ModulePass):
    """Does nothing to what is computed, with one option."""

    name = "mark"
    number: int = 0

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Mark, ...]:
        layers = sum(isinstance(op, BitLinearOp) for op in module_op.walk())
        return tuple(Mark(number) for number in range(layers))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["fewbit.mark"] = IntegerAttr(self.number, i64)


@dataclass(frozen=True)
class Break(Mark):
    """Fails."""

    name = "break"

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Break, ...]:
        return (Break(),)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ValueError("on purpose")


@pytest.fixture(scope="module")
def program() -> fewbit.Program:
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    return fewbit.quantize(net, "w8a8", example_inputs=(torch.randn(1, 8),))


def test_all_that_a_pass_can_do(program: fewbit.Program) -> None:
    found = pass_choices(program, [Mark, Break])
    assert [type(each) for each in found] == [Mark, Mark, Break]


@pytest.mark.slow
def test_the_fastest_first_and_failures_named(program: fewbit.Program) -> None:
    found = tune_passes(program, [Mark, Break])
    assert len(found) == 3
    assert [choice.ratio is None for choice in found] == [False, False, True]
    assert "on purpose" in found[-1].reason
