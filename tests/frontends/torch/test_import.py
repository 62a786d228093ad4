"""PyTorch modules as programs: the same numbers, the same hierarchy, at any declared size."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.base.typed_torch import manual_seed, split
from fewbit.dialects.mico import BitLinearOp
from fewbit.errors import UnsupportedError
from fewbit.frontends import import_model
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.program.program import Program

cond: Callable[..., torch.Tensor] = cast(Any, torch).cond
while_loop: Callable[..., tuple[torch.Tensor, ...]] = cast(
    Any, import_module("torch._higher_order_ops.while_loop")
).while_loop
fft: Callable[[torch.Tensor], torch.Tensor] = cast(Any, torch.fft).fft


def assert_same(program: Program, model: nn.Module, *inputs: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model(*inputs)
    references = cast(
        "tuple[torch.Tensor, ...]", expected if isinstance(expected, tuple) else (expected,)
    )
    given = program.run(*(x.numpy() for x in inputs))
    assert len(given) == len(references)
    for y, reference in zip(given, references, strict=True):
        assert y.shape == tuple(reference.shape)
        scale = max(float(reference.abs().max()), 1e-6)
        assert np.abs(y - reference.numpy()).max() / scale < 1e-5


class Feed(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (
            layer(x).view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(d), nn.LayerNorm(d)
        self.attn, self.mlp = Attention(d, 4), Feed(d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layers = nn.ModuleList(Block(32) for _ in range(2))
        self.head = nn.Linear(32, 50)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.fixture(scope="module")
def language() -> tuple[nn.Module, Program]:
    manual_seed(0)
    model = Language().eval()
    shapes = {"ids": {0: Dim("batch"), 1: Dim("tokens", min=2, max=64)}}
    return model, import_model(model, (torch.zeros(2, 8, dtype=torch.int64),), shapes)


@pytest.mark.parametrize(("batch", "tokens"), [(1, 8), (3, 17)])
def test_language_model_equals_eager(
    language: tuple[nn.Module, Program], batch: int, tokens: int
) -> None:
    model, program = language
    assert_same(program, model, torch.randint(0, 50, (batch, tokens)))


def test_hierarchy_is_kept(language: tuple[nn.Module, Program]) -> None:
    text = language[1].text()
    assert re.findall(r"graph\.subgraph @(\S+)\(", text) == [
        "model.layers.0.attn",
        "model.layers.0.mlp",
        "model.layers.0",
        "model.layers.1.attn",
        "model.layers.1.mlp",
        "model.layers.1",
        "model",
    ]
    assert "graph.call @model.layers.0(" in text
    again = parse_module(text)
    verify(again)
    assert print_module(again) == text


def test_layers_stay_one_op_and_know_their_place(language: tuple[nn.Module, Program]) -> None:
    layers = [op for op in language[1].module.walk() if isinstance(op, BitLinearOp)]
    assert len(layers) == 15
    assert place_of(layers[0]).layer == "layers.0.attn.q"
    assert (place_of(layers[0]).file or "").endswith("test_import.py")
    for op in language[1].module.walk():
        if op.name.startswith(("mico.", "linalg.")) and op.name != "mico.constant":
            assert place_of(op).file is not None, op.name


def test_weights_are_in_the_store(language: tuple[nn.Module, Program]) -> None:
    model, program = language
    assert set(program.store.keys()) == set(model.state_dict())
    bias = model.get_parameter("head.bias").detach().numpy()
    np.testing.assert_array_equal(program.store["head.bias"], bias)
    program.verify()


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, stride=(2, 1), padding=(1, 2), dilation=(1, 2))
        self.bn = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8, padding="same", bias=False)
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.average = nn.AvgPool2d(2, count_include_pad=False)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu6(self.bn(self.a(x)))
        x = self.average(self.pool(F.hardtanh(self.depthwise(x), 0, 6)))
        return F.softmax(self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)), -1)


def test_convolutions() -> None:
    manual_seed(0)
    model = Convolutions().eval()
    program = import_model(model, (torch.randn(2, 3, 20, 21),), {"x": {0: Dim("n")}})
    assert_same(program, model, torch.randn(3, 3, 20, 21))
    assert "linalg" not in program.text()


class Everything(nn.Module):
    """Ops that have none of ours, with sizes that are known only at run time."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _, t, d = x.shape
        position = torch.arange(t, dtype=torch.float32)
        y = x.mean(-1, keepdim=True) + position[None, :, None].sin()
        w = torch.where(x > 0, x, torch.zeros_like(x)).pow(2)
        first, second = split(x, 2, dim=-1)
        return (
            y,
            x[:, 1:] * 2.5 - 1,
            w.expand(3, t, d).reshape(3 * t, d),
            torch.cat([x, x.flip(1)], 1),
            first - second,
            x.std(-1).clamp(0.1, 2.0),
            torch.einsum("btd,bsd->bts", x, x),
        )


def test_other_ops_go_through_torch_mlir() -> None:
    program = import_model(Everything(), (torch.randn(1, 8, 4),), {"x": {1: Dim("t", min=3)}})
    for t in (8, 5):
        assert_same(program, Everything(), torch.randn(1, t, 4))
    assert "func.call" not in program.text()


class ClassToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)


def test_parameter_in_a_concatenation() -> None:
    model = ClassToken()
    program = import_model(model, (torch.randn(2, 3, 4),), {"x": {0: Dim("n")}})
    assert_same(program, model, torch.randn(5, 3, 4))


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            return F.relu(self.layer(x))

        def negative(x: torch.Tensor) -> torch.Tensor:
            return x.cos() - 1

        return cond(x.sum() > 0, positive, negative, (x,))


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def goes_on(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return i < 3

        def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, torch.tanh(self.layer(y))

        return while_loop(goes_on, body, (torch.tensor(0), x))[1]


def test_cond() -> None:
    model = Branches()
    program = import_model(model, (torch.ones(2, 4),))
    assert_same(program, model, torch.ones(2, 4))
    assert_same(program, model, -torch.ones(2, 4))


def test_while_loop() -> None:
    model = Loop()
    program = import_model(model, (torch.ones(2, 4),))
    assert_same(program, model, torch.randn(2, 4))


class Cache(nn.Module):
    k: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("k", torch.zeros(4, 3))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        self.k.index_copy_(0, i, x)
        return self.k.sum(0)


def test_buffer_that_is_updated_is_an_input_and_an_output() -> None:
    model = Cache()
    x, i = torch.randn(1, 3), torch.tensor([2])
    program = import_model(model, (x, i))
    assert float(model.k.abs().sum()) == 0, "importing must not change the model"
    state = model.k.numpy().copy()
    for row in (2, 0):
        i = torch.tensor([row])
        y, state = program.run(x.numpy(), i.numpy(), state)
        np.testing.assert_allclose(y, model(x, i).numpy(), rtol=1e-6)
        np.testing.assert_array_equal(state, model.k.numpy())


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.feed = Feed(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.feed(self.feed(x))


def test_module_that_is_called_twice() -> None:
    model = Shared()
    program = import_model(model, (torch.randn(2, 8),))
    assert_same(program, model, torch.randn(2, 8))
    assert "@model.feed$1" in program.text() or '@"model.feed$1"' in program.text()


class Hidden(nn.Module):
    """Reads what the call before kept."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = getattr(self, "last", x)
        self.last = x * 2 + before
        return x + before


def test_hidden_state_is_refused() -> None:
    model = Hidden()
    with pytest.raises(UnsupportedError, match="last") as caught:
        import_model(model, (torch.ones(2),))
    assert "register_buffer" in (caught.value.hint or "")
    assert not hasattr(model, "last")


class LeftBehind(nn.Module):
    """Keeps what it computed, and reads it in the same call only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x * 2
        return x + self.last


def test_what_a_call_leaves_behind_is_no_state() -> None:
    model = LeftBehind()
    program = import_model(model, (torch.ones(2),))
    assert not hasattr(model, "last")
    assert_same(program, model, torch.randn(2))


class Listed(nn.Module):
    """Keeps what it computed, in something that holds it, and reads what it kept before."""

    def __init__(self, kept: object) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: Any = self.kept
        before: list[torch.Tensor] = list(kept.values() if hasattr(kept, "values") else kept)
        self.kept = {list: [x * 2], dict: {"y": x * 2}, np.ndarray: np.zeros(3)}[type(kept)]
        return x + (before[0] if before else 1)


@pytest.mark.parametrize("kept", [[torch.ones(2)], [], {"y": torch.ones(2)}, np.ones(3)])
def test_tensors_held_in_attributes_are_refused(kept: object) -> None:
    model = Listed(kept)
    with pytest.raises(UnsupportedError, match=r"the model\.kept"):
        import_model(model, (torch.ones(2),))
    assert model.kept is kept


def test_attributes_that_are_bound_to_equal_things_are_fine() -> None:
    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sizes, self.views = [2], [torch.ones(2)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.sizes, self.views = [x.shape[0]], list(self.views)
            return x + 1

    assert_same(import_model(Sized(), (torch.ones(2),)), Sized(), torch.ones(2))


class Unsupported(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = cast(Any, torch.linalg).eigvalsh(x)
        return y + fft(x).real.sum() + cast(Any, torch.special).i1(y)


def test_all_unsupported_ops_are_listed_with_their_lines() -> None:
    with pytest.raises(UnsupportedError, match="these ops cannot be imported") as caught:
        import_model(Unsupported(), (torch.eye(3),))
    assert "_linalg_eigh" in caught.value.what
    assert "i1" in caught.value.what
    assert "test_import.py" in caught.value.what


class Effects(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fft(x).abs() + cast(Any, torch.linalg).inv(x) + torch.randn_like(x)


def test_random_numbers_and_tokens_do_not_hide_the_list() -> None:
    with pytest.raises(UnsupportedError, match="these ops cannot be imported") as caught:
        import_model(Effects(), (torch.eye(3),))
    for word in ("with_effects", "linalg_inv", "randn_like"):
        assert word in caught.value.what
    assert "_assert" not in caught.value.what


class Nonzero(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.nonzero()


def test_sizes_that_depend_on_data() -> None:
    program = import_model(Nonzero(), (torch.eye(3),))
    (result,) = program.run(
        np.array([[0, 1], [1, 0]], np.float32).repeat(2, 0)[:3].repeat(2, 1)[:, :3]
    )
    assert result.shape[1] == 2


class DataDependent(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def test_branch_on_data_is_explained() -> None:
    with pytest.raises(UnsupportedError, match="cannot trace") as caught:
        import_model(DataDependent(), (torch.ones(2),))
    assert "torch.cond" in (caught.value.hint or "")


def test_training_mode_is_left_as_it_was() -> None:
    model = Feed(8).train()
    import_model(model, (torch.randn(2, 8),))
    assert all(module.training for module in model.modules())


def test_a_list_of_parameters() -> None:
    """They are named by numbers, and so are the constants."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ParameterList([torch.randn(4) for _ in range(3)])

        def forward(self, x: torch.Tensor, _0: torch.Tensor) -> torch.Tensor:
            for scale in self.scales:
                x = x * scale + _0
            return x

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    model = Scaled()
    program = import_model(model, (x, y))
    assert_same(program, model, x, y)
    compiled = fewbit.compile(program)(x.numpy(), y.numpy())
    np.testing.assert_allclose(compiled, program.run(x.numpy(), y.numpy())[0], rtol=1e-5)


@pytest.mark.parametrize("pad", [(-1, 2), (-1, -2), (0, -1), (-1, 2, 1, -1), (1, 1, -2, 0)])
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
def test_padding_by_negative_amounts(pad: tuple[int, ...], mode: str) -> None:
    class Padded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.pad(x, pad, mode, 1.5 if mode == "constant" else None)

    x = torch.randn(2, 3, 5, 4) if len(pad) == 4 else torch.randn(2, 3, 4)
    model = Padded()
    program = import_model(model, (x,), {"x": {0: Dim("n")}})
    assert_same(program, model, x)
    np.testing.assert_array_equal(fewbit.compile(program)(x.numpy()), model(x).numpy())


def test_negative_pads_of_a_dynamic_axis() -> None:
    class Cropped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.pad(x, (-1, 2, -1, -1))

    model = Cropped()
    program = import_model(model, (torch.randn(6, 5),), {"x": {0: Dim("n", min=4), 1: Dim("m")}})
    for shape in ((6, 5), (4, 3), (9, 4)):
        assert_same(program, model, torch.randn(shape))
