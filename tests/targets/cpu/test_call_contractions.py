"""Products among linalg ops: which become calls, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.kernels import Isa
from fewbit.program.program import Program
from fewbit.targets.compile import lower


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.function(a, b)


Case = tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], tuple[int, ...], tuple[int, ...]]

CASES: dict[str, Case] = {
    "matrices": (torch.matmul, (17, 33), (33, 19)),
    "transposed": (lambda a, b: a @ b.T, (17, 33), (19, 33)),
    "batches": (torch.matmul, (3, 9, 16), (3, 16, 21)),
    "heads": (lambda a, b: a @ b.transpose(-1, -2), (2, 3, 7, 16), (2, 3, 11, 16)),
    "one matrix for all": (torch.matmul, (2, 5, 16), (16, 20)),
    "einsum": (lambda a, b: torch.einsum("bik,kj->bij", a, b), (2, 9, 16), (16, 12)),
    "a row": (torch.matmul, (1, 40), (40, 50)),
    "a query": (lambda a, b: torch.einsum("he,hje->hj", a, b), (6, 48), (6, 64, 48)),
    "a panel": (torch.matmul, (17, 33), (33, 16)),
    "panels of heads": (torch.matmul, (2, 3, 5, 21), (2, 3, 21, 16)),
    "a panel for all": (torch.matmul, (3, 5, 21), (21, 64)),
    "two panels": (torch.matmul, (5, 21), (21, 96)),
    "accumulated": (lambda a, b: torch.addmm(torch.ones(17, 19), a, b), (17, 33), (33, 19)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_products(case: str, threads: int) -> None:
    function, first, second = CASES[case]
    manual_seed(0)
    a, b = torch.randn(first), torch.randn(second)
    art = fewbit.compile(Of(function), example_inputs=(a, b), name="net")
    result = art(a.numpy(), b.numpy(), threads=threads)
    np.testing.assert_allclose(result, function(a, b), atol=2e-5)


def test_keys_of_one_query_are_not_packed() -> None:
    function, first, second = CASES["a query"]
    given = (torch.randn(first), torch.randn(second))
    program = fewbit.import_model(Of(function), given)
    assert "_pack" not in lower(program, "memref")


def test_sizes_that_only_a_run_knows() -> None:
    rows, depth, columns = (Dim(name, min=2, max=64) for name in ("rows", "depth", "columns"))
    shapes = ({0: rows, 1: depth}, {0: depth, 1: columns})
    model = Of(torch.matmul)
    art = fewbit.compile(
        model, example_inputs=(torch.randn(4, 5), torch.randn(5, 6)), dynamic_shapes=shapes,
        name="net",
    )  # fmt: skip
    for m, k, n in ((2, 3, 5), (31, 33, 47)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        np.testing.assert_allclose(art(a.numpy(), b.numpy()), a @ b, atol=2e-5)


def test_attention_has_no_loops_of_products() -> None:
    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(q, k, v)

    q, k, v = (torch.randn(1, 2, 9, 16) for _ in range(3))
    program = fewbit.import_model(Attention(), (q, k, v))
    packed = 1 if Isa.host().panel_width >= 16 else 2
    assert lower(program, "linalg").count("call @kernel.") == 2 + packed
    result = fewbit.compile(program, name="net")(q.numpy(), k.numpy(), v.numpy())
    np.testing.assert_allclose(result, Attention()(q, k, v), atol=1e-5)


def test_integers_stay_loops() -> None:
    a, b = torch.randint(-9, 9, (17, 33)), torch.randint(-9, 9, (33, 19))
    program = fewbit.import_model(Of(torch.matmul), (a, b))
    assert "call @kernel." not in lower(program, "linalg")
    np.testing.assert_array_equal(fewbit.compile(program, name="net")(a.numpy(), b.numpy()), a @ b)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("tokens", [1, 5, 70])
def test_quantized_queries_and_keys(tokens: int, threads: int) -> None:
    """Their products are sums of integers, by the kernel for them."""
    shape = "tensor<2x3x?x20xf32>"
    program = Program.parse(f"""
func.func @main(%q: {shape}, %k: {shape}, %v: {shape}) -> {shape} {{
  %y = mico.attention(%q, %k, %v) {{query_bits = 8, key_bits = 6}}
      : ({shape}, {shape}, {shape}) -> {shape}
  func.return %y : {shape}
}}""")
    assert "fewbit_matmul_i8_i32" in lower(program, "llvm")
    rng = np.random.default_rng(tokens)
    given = [rng.standard_normal((2, 3, tokens, 20)).astype(np.float32) for _ in range(3)]
    results = fewbit.compile(program, name="net").run(*given, threads=threads)
    np.testing.assert_allclose(results[0], program.run(*given)[0], atol=1e-5)
