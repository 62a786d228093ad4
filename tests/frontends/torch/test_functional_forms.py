"""However a model writes a layer, it is the layer of the same weight: in integers and to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import fewbit
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from fewbit.quant.weights import float_weights

RECIPES = ("w8a8", "w4a8", "w1a8", "w2a4", "w4afp", "w4a8-asym", "w4a8g4")
Form = Callable[[Tensor, Tensor, Tensor], Tensor]
"""An input, the weight of an `nn.Linear`, and its bias."""


class Written(nn.Module):
    """A layer that is written out, with its weight as the form has it."""

    def __init__(self, layer: nn.Linear, form: Form, keep: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.form = form
        self.weight = nn.Parameter(keep(layer.weight.detach()).contiguous())
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.form(x, self.weight, self.bias)


def transpose(w: Tensor) -> Tensor:
    return w.T


def same(w: Tensor) -> Tensor:
    return w


def stack(w: Tensor) -> Tensor:
    return w.T[None]


def gpt2(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The layer of GPT-2."""
    rows = torch.addmm(b, x.view(-1, x.size(-1)), w)
    return rows.view(*x.shape[:-1], w.shape[1])


FORMS: dict[str, tuple[Form, Callable[[Tensor], Tensor]]] = {
    "F.linear": (F.linear, same),
    "Conv1D of GPT-2": (gpt2, transpose),
    "x @ w.T + b, as Falcon": (lambda x, w, b: x @ w.T + b, same),
    "x @ w + b": (lambda x, w, b: x @ w + b, transpose),
    "b + x @ w": (lambda x, w, b: b + torch.matmul(x, w), transpose),
    "mm": (lambda x, w, b: torch.mm(x.flatten(0, -2), w).view(*x.shape[:-1], -1) + b, transpose),
    "bmm": (lambda x, w, b: torch.bmm(x.flatten(0, -2)[None], w)[0].view(*x.shape[:-1], -1) + b, stack),
    "baddbmm": (
        lambda x, w, b: torch.baddbmm(b, x.flatten(0, -2)[None], w)[0].view(*x.shape[:-1], -1),
        stack,
    ),
    "einsum": (lambda x, w, b: torch.einsum("...i,oi->...o", x, w) + b, same),
    "einsum, transposed": (lambda x, w, b: torch.einsum("bti,io->bto", x, w) + b, transpose),
    "w @ x.T": (lambda x, w, b: (w @ x.transpose(-1, -2)).transpose(-1, -2) + b, same),
    "tensordot": (lambda x, w, b: cast(Any, torch).tensordot(x, w, ([-1], [1])) + b, same),
    "broadcast": (lambda x, w, b: torch.matmul(x, w) + b, stack),
}  # fmt: skip


def quantized(model: nn.Module, recipe: str, *x: Tensor) -> Program:
    return fewbit.quantize(model.eval(), recipe, example_inputs=x, strict=True)


def integers(program: Program) -> dict[tuple[int, ...], bytes]:
    """Packed weights, by shape."""
    return {program.store.shape(k): program.store[k].tobytes() for k in program.store}


def assert_same(written: nn.Module, plain: nn.Module, recipe: str, x: Tensor) -> Program:
    """Compare two models: their integers, and their results to the bit."""
    ours, theirs = quantized(written, recipe, x), quantized(plain, recipe, x)
    assert integers(ours) == integers(theirs)
    for value in (x, torch.randn_like(x)):
        np.testing.assert_array_equal(ours.run(value.numpy())[0], theirs.run(value.numpy())[0])
    return ours


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_the_layer_of_its_weight(form: str) -> None:
    layer, x = nn.Linear(12, 5), torch.randn(2, 3, 12)
    written = Written(layer, *FORMS[form])
    np.testing.assert_allclose(written(x).detach(), layer(x).detach(), atol=1e-5)
    for recipe in RECIPES if form == "x @ w + b" else RECIPES[1:2]:
        program = assert_same(written, layer, recipe, x)
        assert list(layers(program.module)) == ["weight"]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_compiles(form: str) -> None:
    layer, x = nn.Linear(12, 5), torch.randn(2, 3, 12)
    program = quantized(Written(layer, *FORMS[form]), "w4a8", x)
    expected = program.run(x.numpy())[0]
    np.testing.assert_allclose(fewbit.compile(program)(x.numpy()), expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=8)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    features=st.integers(2, 9),
    outputs=st.integers(2, 9),
    form=st.sampled_from(sorted(FORMS)),
)
def test_forms_of_any_size(sizes: list[int], features: int, outputs: int, form: str) -> None:
    layer = nn.Linear(features, outputs)
    assert_same(Written(layer, *FORMS[form]), layer, "w4a8", torch.randn(*sizes, features))


@pytest.mark.parametrize("form", ["Conv1D of GPT-2", "x @ w.T + b, as Falcon", "x @ w + b"])
def test_dynamic_sizes(form: str) -> None:
    layer, x = nn.Linear(12, 5), torch.randn(2, 3, 12)
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    shapes = ({0: batch, 1: length},)
    programs = [
        fewbit.quantize(m, "w4a8", example_inputs=(x,), dynamic_shapes=shapes, strict=True)
        for m in (Written(layer, *FORMS[form]), layer)
    ]
    for size in ((1, 1), (4, 7)):
        value = np.random.default_rng(0).normal(size=(*size, 12)).astype(np.float32)
        ours, theirs = (program.run(value)[0] for program in programs)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats(dtype: torch.dtype) -> None:
    layer, x = nn.Linear(12, 5).to(dtype), torch.randn(2, 3, 12).to(dtype)
    program = fewbit.quantize(
        Written(layer, *FORMS["x @ w + b"]), "w4a8", example_inputs=(x,), strict=True
    )
    assert list(layers(program.module)) == ["weight"]


class Experts(nn.Module):
    """All experts on their own part of the input, as weights in one stack."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.randn(3, 8, 6))

    def forward(self, x: Tensor) -> Tensor:
        return torch.bmm(x, self.up)


def test_experts_are_layers_of_their_own() -> None:
    model, x = Experts(), torch.randn(3, 5, 8)
    program = quantized(model, "w4a8", x)
    assert list(layers(program.module)) == ["up.0", "up.1", "up.2"]
    result = program.run(x.numpy())[0]
    for i in range(3):
        layer = nn.Linear(8, 6, bias=False)
        layer.weight = nn.Parameter(model.up[i].T.detach().contiguous())
        alone = quantized(layer, "w4a8", x[i])
        np.testing.assert_array_equal(result[i], alone.run(x[i].numpy())[0])


class Tied(nn.Module):
    """A head that is the table, as in Gemma; written out, as in older models."""

    def __init__(self, written: bool) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.head.weight = self.table.weight
        self.written = written

    def forward(self, i: Tensor) -> Tensor:
        x = self.table(i)
        return x @ self.table.weight.T if self.written else self.head(x)


@pytest.mark.parametrize("written", [False, True])
def test_a_tied_table_is_stored_once(written: bool) -> None:
    program = quantized(Tied(written), "w4a8", torch.tensor([[1, 2]]))
    assert len([key for key in program.store if "scale" not in key]) == 1
    assert float_weights(program) is None


def test_projections_of_attention_that_are_parts_of_one_weight() -> None:
    """Queries of one sequence and keys of another take their parts of `in_proj_weight`."""

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.attention(x, y, y, need_weights=False)[0]

    inputs = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    program = quantized(Cross(), "w8a8", *inputs)
    names = list(layers(program.module))
    assert len(names) == 3
    assert all(name.startswith("attention.in_proj_weight.") for name in names[:2])
    model: Any = Cross()
    imported = fewbit.import_model(model, inputs)
    expected = model(*inputs).detach().numpy()
    result = imported.run(*(x.numpy() for x in inputs))[0]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_experts_that_all_see_every_row(dynamic: bool) -> None:
    """Mixtures of experts are written so without data-dependent sizes."""

    class Everywhere(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Parameter(torch.randn(3, 6, 8))

        def forward(self, x: Tensor, share: Tensor) -> Tensor:
            return (torch.matmul(x, self.up.transpose(1, 2)) * share.T[:, :, None]).sum(0)

    model, inputs = Everywhere(), (torch.randn(5, 8), torch.rand(5, 3))
    rows = torch.export.Dim("rows")
    shapes = ({0: rows}, {0: rows}) if dynamic else None
    program = fewbit.import_model(model, inputs, shapes)
    expected = model(*inputs).detach().numpy()
    result = program.run(*(value.numpy() for value in inputs))[0]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    quantized = fewbit.quantize(program, "w4a8,up=w8a8", strict=True)
    assert all(name == "up" or name.startswith("up.") for name in layers(quantized.module))
