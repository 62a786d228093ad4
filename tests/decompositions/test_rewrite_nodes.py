# pyright: basic
"""Graphs that are rewritten node by node are those that torch traces as a whole."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.nn import functional as F

from fewbit.decompositions.rewrite_nodes import rewrite_nodes
from fewbit.frontends.torch.capture import decompose, decomposition_table
from fewbit.frontends.torch.capture import export as export_module
from tests.frontends.torch.agreement import Function


class Block(nn.Module):
    """What networks are made of: updates in place, a dropout, views, a sum with what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout()
        self.head = nn.Linear(4 * 25, 3)

    def forward(self, input: Tensor) -> Tensor:
        y = self.relu(self.norm(self.conv(input)))
        y += input
        return self.head(self.drop(y).flatten(1))


def export(model: nn.Module, *inputs: Tensor) -> ExportedProgram:
    return export_module(model.eval(), inputs)


def rewrite(model: nn.Module, *inputs: Tensor) -> ExportedProgram | None:
    with torch.no_grad():
        return rewrite_nodes(export(model, *inputs), decomposition_table())


def ops(program: ExportedProgram) -> list[str]:
    """The ops of a graph; the parts of tuples that nothing reads are no matter."""
    return [
        str(node.target)
        for node in program.graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    ]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda x: torch.relu(x),
    "in place": lambda x: (x + 1).relu_().mul_(2).add_(x),
    "used before": lambda x: (lambda y: (y * 2) + y.sigmoid_())(x + 1),
    "parts": lambda x: torch.cat([p * i for i, p in enumerate(x.chunk(2, 1))], 1),
    "several": lambda x: torch.max(x, 1),
    "itself": lambda x: (F.dropout(x, training=False), x + 1),
    "pad": lambda x: F.pad(x, (1, 1, 2, 0), mode="reflect"),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "einsum": lambda x: torch.einsum("bcij,bcik->bcjk", x, x),
    "fill": lambda x: torch.zeros_like(x).fill_(3) + x,
    "types": lambda x: (x > 0).to(torch.float32) + x.to(torch.float64).mean().float(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_what_torch_traces(name: str) -> None:
    model, x = Function(FUNCTIONS[name]), torch.randn(2, 4, 5, 5)
    rewritten = rewrite(model, x)
    assert rewritten is not None
    with torch.no_grad():
        traced = export(model, x).run_decompositions(decomposition_table())
    assert ops(rewritten) == ops(traced)
    for a, b in zip(_results(rewritten, x), _results(traced, x), strict=True):
        assert torch.equal(a, b)


def _results(program: ExportedProgram, x: Tensor) -> list[Tensor]:
    results = program.module(check_guards=False)(x.clone())
    return list(results) if isinstance(results, tuple) else [results]


def test_a_block_keeps_its_names() -> None:
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(2, 4, 5, 5)
    rewritten = rewrite(model, x)
    assert rewritten is not None
    with torch.no_grad():
        traced = export(model, x).run_decompositions(decomposition_table())
    assert ops(rewritten) == ops(traced)
    inputs = [spec.arg.name for spec in rewritten.graph_signature.input_specs]
    assert inputs == [node.name for node in rewritten.graph.nodes if node.op == "placeholder"]
    assert "input" in inputs
    by_layer = {
        next(iter(reversed(node.meta["nn_module_stack"].values())))[0]
        for node in rewritten.graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    }
    assert by_layer == {"", "conv", "norm", "relu", "drop", "head"}
    assert torch.allclose(rewritten.module()(x), model(x), atol=1e-6)


def _write_a_part(x: Tensor) -> Tensor:
    y = x + 1
    y[:, 0] = 0
    return y


def _write_below_a_view(x: Tensor) -> Tensor:
    y = x + 1
    rows = y.flatten(1)
    y.relu_()
    return rows * 2


def _write_to_the_input(x: Tensor) -> Tensor:
    return x.clone().view(-1).mul_(2) + x.view(-1)


@pytest.mark.parametrize("function", [_write_a_part, _write_below_a_view])
def test_writes_that_others_see_need_a_trace(function: Callable[..., Tensor]) -> None:
    model, x = Function(function), torch.randn(2, 4, 5, 5)
    assert rewrite(model, x) is None
    with torch.no_grad():
        decomposed = decompose(export(model, x))
    assert torch.equal(_results(decomposed, x)[0], function(x))


def test_a_copy_may_be_written_to() -> None:
    x = torch.randn(2, 4, 5, 5)
    rewritten = rewrite(Function(_write_to_the_input), x)
    assert rewritten is not None
    assert torch.equal(_results(rewritten, x)[0], x.view(-1) * 3)


def test_a_view_that_is_all_that_is_left_may_be_written_to() -> None:
    x = torch.randn(2, 4, 5, 5)
    rewritten = rewrite(Function(lambda x: F.silu((x + 1).flatten(1), inplace=True)), x)
    assert rewritten is not None
    assert torch.equal(_results(rewritten, x)[0], F.silu((x + 1).flatten(1)))


def test_dynamic_sizes_need_a_trace() -> None:
    dim = {0: torch.export.Dim("n", max=8)}
    model = Function(lambda x: x.flatten(1))
    exported = export_module(model, (torch.ones(3, 4, 5),), None, ((dim,),))
    assert rewrite_nodes(exported, decomposition_table()) is None
