"""Graphs that are rewritten node by node are those that torch traces as a whole."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.nn import functional as F

from fewbit.base.typed_torch import manual_seed, run_decompositions, split
from fewbit.decompositions.rewrite_nodes import rewrite_nodes
from fewbit.decompositions.views import is_write
from fewbit.frontends.torch.capture import decompose, decomposition_table
from fewbit.frontends.torch.capture import export as export_module
from fewbit.frontends.torch.open_dims import sizes_of_any_kind
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


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
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
    "alike": lambda x: torch.stack([y.flatten(1) for y in (x, x.sin(), x.cos())], 1),
    "unused": lambda x: (torch.rand(3), x.sin(), x + 1)[2],
    "types": lambda x: (x > 0).to(torch.float32) + x.to(torch.float64).mean().float(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_what_torch_traces(name: str) -> None:
    model, x = Function(FUNCTIONS[name]), torch.randn(2, 4, 5, 5)
    rewritten = rewrite(model, x)
    assert rewritten is not None
    with torch.no_grad():
        traced = run_decompositions(export(model, x), decomposition_table())
    assert ops(rewritten) == ops(traced)
    for a, b in zip(_results(rewritten, x), _results(traced, x), strict=True):
        assert torch.equal(a, b)


def _results(program: ExportedProgram, x: Tensor) -> list[Tensor]:
    results = program.module(check_guards=False)(x.clone())
    return [results] if isinstance(results, Tensor) else list(results)


def test_a_block_keeps_its_names() -> None:
    manual_seed(0)
    model, x = Block().eval(), torch.randn(2, 4, 5, 5)
    rewritten = rewrite(model, x)
    assert rewritten is not None
    with torch.no_grad():
        traced = run_decompositions(export(model, x), decomposition_table())
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


def _write_through_views(x: Tensor) -> tuple[Tensor, Tensor]:
    """Views of views, some written, some read afterwards; what was read before stays."""
    y = x * 1
    before, rows = y * 2, y.transpose(1, 2)[:, 1:4]
    rows[..., 2].add_(5)
    y.permute(3, 0, 1, 2)[0].unsqueeze(0).mul_(3)
    rows.squeeze(0)[0] = y[0, 1, 1]
    return before, y.view(2, -1) + rows.sum()


def _write_into_pieces(x: Tensor) -> Tensor:
    y = x.clone()
    first, second = y.chunk(2, 1)
    third, fourth = split(y, [1, 4], 2)
    first += second
    third.zero_()
    y.unbind(3)[2].copy_(fourth[..., :1, 0])
    return torch.cat([first, second], 0) + y.sum()


def _write_by_index(x: Tensor) -> Tensor:
    y = x.clone()
    z = y.flatten(2)
    y[:, torch.tensor([0, 2])] = 7.0
    z[z < 0] = 0.5
    return y


def _keep_a_copy(x: Tensor) -> Tensor:
    """Change a tensor after another was copied into it; that one stays."""
    y, z = torch.zeros_like(x), x * 2
    y.copy_(z)
    y += 1
    return y * z


WRITES = (
    _write_a_part,
    _write_below_a_view,
    _write_through_views,
    _write_into_pieces,
    _write_by_index,
    _keep_a_copy,
)


@pytest.mark.parametrize("function", WRITES)
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_writes_are_seen_by_all_views(function: Callable[[Tensor], Any], is_dynamic: bool) -> None:
    x = torch.randn(2, 4, 5, 5)
    rewritten = rewrite_open(function, x) if is_dynamic else rewrite(Function(function), x)
    assert rewritten is not None
    assert not any(is_write(node) for node in rewritten.graph.nodes)
    inputs = [x, torch.randn(3, 4, 5, 5)] if is_dynamic else [x]
    for given in inputs:
        expected: Any = function(given)
        expected = (expected,) if isinstance(expected, Tensor) else expected
        for a, b in zip(_results(rewritten, given), expected, strict=True):
            assert torch.allclose(a, b, atol=1e-5)


def _reshape_to_a_copy(x: Tensor) -> Tensor:
    """Reshape so that the order of elements in memory decides whether this copies."""
    y = (x + 1).transpose(1, 3)
    copy = y.reshape(2, -1)
    y += 1
    return copy * 2


def _turn_in_place(x: Tensor) -> Tensor:
    y = x + 1
    z = y[0, 0]
    z.t_()
    z[0] = 3
    return y


def test_a_reshape_that_copies_is_not_written_to() -> None:
    x = torch.randn(2, 4, 5, 5)
    model = Function(_reshape_to_a_copy)
    decomposed = decompose(export(model, x))
    assert torch.equal(_results(decomposed, x)[0], _reshape_to_a_copy(x))


def test_a_view_that_becomes_another_needs_a_trace() -> None:
    x = torch.randn(2, 4, 5, 5)
    assert rewrite(Function(_turn_in_place), x) is None


class Count(nn.Module):
    """A buffer that a call changes, in part."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.seen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.seen[1:3] += x.sum()
        return x + self.seen


def test_buffers_that_are_written_are_results() -> None:
    x = torch.randn(3, 4)
    rewritten = rewrite(Count(), x)
    assert rewritten is not None
    kinds = [(spec.kind, spec.target) for spec in rewritten.graph_signature.output_specs]
    assert kinds == [(OutputKind.BUFFER_MUTATION, "seen"), (OutputKind.USER_OUTPUT, None)]
    own, module = Count(), rewritten.module()
    for _ in range(2):
        assert torch.allclose(module(x), own(x))
    assert torch.allclose(module.get_buffer("seen"), own.seen)


def _write_to_the_input(x: Tensor) -> Tensor:
    return x.clone().view(-1).mul_(2) + x.view(-1)


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


OPEN: dict[str, Callable[[Tensor], Any]] = {
    "flatten": lambda x: x.flatten(1),
    "sizes": lambda x: x.view(x.shape[0] * x.shape[1], -1) + x.shape[0],
    "window": lambda x: F.avg_pool2d(x, 3, 2).flatten(2),
    "in place": lambda x: (x + 1).relu_().mul_(x.shape[0]),
    "grid": lambda x: x + torch.arange(x.shape[2]).unsqueeze(1),
    "pad": lambda x: F.pad(x, (1, 1, 2, 0), mode="reflect"),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "resize": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "halves": lambda x: x[:, :, : x.shape[2] // 2] * 2,
}


def rewrite_open(
    function: Callable[[Tensor], Any], x: Tensor, dims: tuple[int, ...] = (0,)
) -> ExportedProgram | None:
    dynamic = {dim: torch.export.Dim(f"size{dim}", max=64) for dim in dims}
    exported = export_module(Function(function), (x,), None, ((dynamic,),))
    with torch.no_grad(), sizes_of_any_kind():
        return rewrite_nodes(exported, decomposition_table())


@pytest.mark.parametrize("name", OPEN)
def test_dynamic_sizes_are_what_torch_traces(name: str) -> None:
    function, dims = OPEN[name], (0, 2)
    x = torch.randn(2, 4, 6, 5)
    rewritten = rewrite_open(function, x, dims)
    assert rewritten is not None
    exported = export_module(
        Function(function), (x,), None, ((dict.fromkeys(dims, torch.export.Dim.DYNAMIC),),)
    )
    with torch.no_grad(), sizes_of_any_kind():
        traced = run_decompositions(exported, decomposition_table())

    def is_of_sizes(op: str) -> bool:
        return "sym_size" in op or "built-in" in op or "_assert" in op

    assert [op for op in ops(rewritten) if not is_of_sizes(op)] == [
        op for op in ops(traced) if not is_of_sizes(op)
    ]
    for given in (x, torch.randn(3, 4, 9, 5)):
        (a,), expected = _results(rewritten, given), function(given)
        assert torch.allclose(a, expected, atol=1e-6)


def test_sizes_of_data_need_a_trace() -> None:
    assert rewrite(Function(lambda x: x[x > 0] * 2), torch.randn(5)) is None


def test_what_the_sizes_must_be_is_asserted() -> None:
    def function(x: Tensor) -> Tensor:
        return x.view(-1, 2, x.shape[1])

    rewritten = rewrite_open(function, torch.randn(4, 6))
    assert rewritten is not None
    with pytest.raises(RuntimeError):
        rewritten.module(check_guards=False)(torch.randn(5, 6))
