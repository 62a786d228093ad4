"""Ten exports whose batch, length and image are dynamic, at sizes that no trace has seen."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import Error, UnsupportedError
from fewbit.frontends import import_model
from tests.frontends.onnx.graphs import model, node, onnx

ort = pytest.importorskip("onnxruntime")


class Windows(nn.Module):
    """Strided convolutions and pooling over a length."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(4, 8, 5, stride=2, padding=2), nn.Conv1d(8, 8, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.max_pool1d(torch.relu(self.b(torch.relu(self.a(x)))), 3, 2, 1)
        return F.avg_pool1d(y, 2, 1, 1)


class Encoder(nn.Module):
    """Attention over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv, self.out = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.table(x)
        q, k, v = self.qkv(y).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(1, 2) / 4, -1)
        return self.out((y + weights @ v).mean(1))


class Resized(nn.Module):
    """An image, half as large and as large as before."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.how = how
        self.a, self.b = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.a(x))
        size = {} if "scale_factor" in self.how else {"size": x.shape[2:]}
        how: dict[str, Any] = {**self.how, **size}
        return self.b(F.interpolate(y, **how))


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, features: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(features, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.layer(x)
        last: Tensor = cast(Any, state)[0] if isinstance(state, tuple) else state
        return self.head(y), last


class Reflected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect")
        self.b = nn.Conv2d(8, 4, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.tanh(self.a(x))).mean((2, 3))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.avg_pool2d(F.max_pool2d(torch.relu(self.conv(x)), 3, 2, 1), 2)
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


class Mixed(nn.Module):
    """A reflected signal, convolution, recurrence and the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gru = nn.Conv1d(4, 8, 3, stride=2), nn.GRU(8, 8, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.conv(F.pad(x, (2, 2), mode="reflect"))).transpose(1, 2)
        return self.head(self.norm(self.gru(y)[0])[:, -1])


class Squeezed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.squeeze(0).softmax(-1)


@dataclass(frozen=True)
class Case:
    model: Callable[[], nn.Module]
    shape: tuple[int | str, ...]
    sizes: Sequence[Mapping[str, int]]
    """The first is what is exported."""

    def inputs(self, sizes: Mapping[str, int]) -> Tensor:
        shape = [size if isinstance(size, int) else sizes[size] for size in self.shape]
        generator = torch.Generator().manual_seed(sum(shape))
        if self.model is Encoder:
            return torch.randint(0, 50, shape, generator=generator)
        return torch.randn(shape, generator=generator)


def lengths(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"b": b, "t": t} for b, t in pairs]


def images(*sizes: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"b": b, "h": h, "w": w} for b, h, w in sizes]


CASES = {
    "windows": Case(Windows, ("b", 4, "t"), lengths((2, 40), (1, 17), (3, 9), (1, 100))),
    "encoder": Case(Encoder, ("b", "t"), lengths((2, 5), (1, 1), (3, 12))),
    "linear resize": Case(
        lambda: Resized(scale_factor=2, mode="bilinear"),
        ("b", 3, "h", "w"),
        images((2, 16, 12), (1, 8, 6), (2, 10, 24)),
    ),
    "resize to a size": Case(
        lambda: Resized(mode="nearest"), ("b", 3, "h", "w"), images((2, 16, 12), (1, 9, 15))
    ),
    "lstm": Case(
        lambda: Recurrent(nn.LSTM(6, 8, batch_first=True, bidirectional=True), 16),
        ("b", "t", 6),
        lengths((2, 7), (1, 1), (3, 20)),
    ),
    "gru": Case(lambda: Recurrent(nn.GRU(6, 8, 2), 8), ("t", "b", 6), lengths((2, 7), (1, 1))),
    "reflect": Case(Reflected, ("b", 3, "h", "w"), images((2, 16, 20), (1, 5, 7))),
    "pooled": Case(Pooled, ("b", 3, "h", "w"), images((2, 16, 20), (1, 9, 11))),
    "mixed": Case(Mixed, ("b", 4, "t"), lengths((2, 16), (1, 5), (3, 40))),
    "squeezed": Case(Squeezed, (1, "b", "t"), lengths((2, 3), (1, 1), (0, 4), (5, 2))),
}


def exported(case: Case) -> Any:
    manual_seed(0)
    file = io.BytesIO()
    axes = {i: size for i, size in enumerate(case.shape) if isinstance(size, str)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cast(Any, torch.onnx).export(
            case.model().eval(), (case.inputs(case.sizes[0]),), file, dynamo=False,
            opset_version=17, input_names=["x"], dynamic_axes={"x": axes},
        )  # fmt: skip
    return onnx.load_from_string(file.getvalue())


@pytest.mark.parametrize("name", CASES)
def test_export_with_dynamic_sizes(name: str) -> None:
    case = CASES[name]
    proto = exported(case)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    program = import_model(proto)
    art = fewbit.compile(program, name="net")
    for sizes in case.sizes:
        x = case.inputs(sizes).numpy()
        expected = session.run(None, {"x": x})
        for found in (program.run(x), art.run(x)):
            for a, b in zip(found, expected, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_mean_of_nothing_is_not_a_number() -> None:
    """PyTorch has it so; onnxruntime gives 0."""
    network = model([node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], {"x": ["b", "t"]}, "y",
                 opset=13)  # fmt: skip
    program = import_model(network)
    assert np.isnan(program.run(np.zeros((2, 0), np.float32))[0]).all()
    assert program.run(np.zeros((0, 3), np.float32))[0].shape == (0,)


def test_what_a_window_needs_is_checked() -> None:
    proto = exported(CASES["windows"])
    with pytest.raises(Error, match="at least 5"):
        import_model(proto).run(np.zeros((1, 4, 4), np.float32))


def test_a_size_that_must_be_known_is_named() -> None:
    network = model(
        [node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2])], {"x": ["b", 2, "t"]}, ["y", "i"]
    )
    with pytest.raises(UnsupportedError, match="'t'") as caught:
        import_model(network)
    assert "--input-shape" in str(caught.value)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceProd", "ReduceL2"])
@pytest.mark.parametrize("length", [4, "n"])
def test_a_number_of_rows_that_data_decides_on_is_reduced(op: str, length: int | str) -> None:
    made = model(
        [node("Compress", ["x", "keep"], ["kept"], axis=0), node(op, ["kept", "axes"], ["y"])],
        {"x": (length, 3), "keep": (length,)},
        ["y"],
        {"axes": np.array([0])},
        {"keep": onnx.TensorProto.BOOL},
    )
    made.ir_version = 10  # the newest that onnxruntime reads is older than onnx's own
    x = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
    compiled: Any = fewbit.compile(import_model(made), "cpu")
    for keep in ([True, False, True, True], [False] * 4):
        given = {"x": x, "keep": np.array(keep)}
        (wanted,) = ort.InferenceSession(made.SerializeToString()).run(None, given)
        np.testing.assert_allclose(compiled(*given.values()), wanted, rtol=1e-6)
