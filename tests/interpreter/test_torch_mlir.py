"""What torch-mlir makes of PyTorch modules, interpreted, equals PyTorch."""

# torch_mlir has no types, and torch leaves many unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from xdsl.dialects.builtin import ModuleOp

from fewbit.interpreter import Interpreter
from tests.interpreter.programs import Array, parse


def imported(module: nn.Module, args: Sequence[Tensor], dynamic: Any = None) -> ModuleOp:
    """The module as torch-mlir lowers it to linalg, through text."""
    from torch_mlir import fx
    from torch_mlir.fx import OutputType

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(module.eval(), tuple(args), dynamic_shapes=dynamic)
        lowered = fx.export_and_import(exported, output_type=OutputType.LINALG_ON_TENSORS)
    return parse(with_weights(lowered.operation.get_asm(print_generic_op_form=True)))


def with_weights(text: str) -> str:
    """Weights in the place of references to resources at the end of the text."""
    text, _, resources = text.partition("{-#")
    blobs = dict(re.findall(r'([\w.]+): "0x[0-9A-F]{8}([0-9A-F]*)"', resources))
    return re.sub(r"dense_resource<([\w.]+)>", lambda found: f'dense<"0x{blobs[found[1]]}">', text)


def array(tensor: Tensor) -> Array:
    if tensor.dtype == torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def flat(results: Any) -> list[Tensor]:
    if isinstance(results, Tensor):
        return [results]
    return [tensor for result in results for tensor in flat(result)]


def close(given: Array, wanted: Array, tolerance: float) -> None:
    if wanted.dtype == np.uint8:
        given = given.view(np.uint8)
    assert (given.dtype, given.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind in "biu":
        assert np.array_equal(given, wanted)
        return
    given, wanted = given.astype(np.float64), wanted.astype(np.float64)
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-30)
    np.testing.assert_allclose(given, wanted, rtol=tolerance, atol=tolerance * size)


def check(
    module: nn.Module,
    *inputs: Sequence[Tensor],
    dynamic: Any = None,
    tolerance: float = 1e-5,
) -> None:
    """Import with the first inputs, and compare on all of them."""
    program = imported(module, inputs[0], dynamic)
    for args in inputs:
        given = Interpreter(program).call(None, [array(a) for a in args])
        with torch.no_grad():
            wanted = flat(module(*args))
        assert len(given) == len(wanted)
        for y, expected in zip(given, wanted, strict=True):
            close(y, array(expected), tolerance)


class Function(nn.Module):
    """A function of a tensor as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class Function2(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y)


class Function3(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Any:
        return self.function(x, y, z)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_mlp_with_dynamic_batch() -> None:
    mlp = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5), nn.Softmax(-1))
    batch = Dim("batch", min=2, max=64)
    check(mlp, [torch.randn(3, 6)], [torch.randn(9, 6)], dynamic=({0: batch},))


def test_convolutions_with_stride_dilation_groups_and_pooling() -> None:
    norm = nn.BatchNorm2d(6)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.uniform_()
    norm.running_var.uniform_(0.5, 2)
    network = nn.Sequential(
        nn.Conv2d(2, 6, 3, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        norm,
        nn.ReLU(),
        nn.Conv2d(6, 6, 3, groups=6, padding=1),
        nn.Conv2d(6, 8, 3, groups=2),
        nn.MaxPool2d(3, 2, padding=1),
        nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    check(network, [torch.randn(2, 2, 17, 15)])


class Shapes(nn.Module):
    """Other layers that move windows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1d = nn.Conv1d(3, 4, 3, padding=1, stride=2)
        self.conv3d = nn.Conv3d(1, 2, 2)
        self.transposed = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)
        self.same = nn.Conv2d(3, 2, 3, padding="same", padding_mode="reflect")

    def forward(self, x: Tensor) -> list[Tensor]:
        line = x.flatten(2)
        return [
            self.conv1d(line),
            self.conv3d(x[:, None]),
            self.transposed(x),
            self.same(x),
            F.max_pool1d(line, 3),
            F.avg_pool1d(line, 4),
            *F.max_pool2d(x, 2, return_indices=True),
            F.interpolate(x, scale_factor=2, mode="nearest"),
            F.interpolate(x, size=(5, 9), mode="bilinear"),
            F.unfold(x, 2),
            F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
            F.adaptive_avg_pool2d(x, 3),
        ]


def test_windows_of_every_kind() -> None:
    check(Shapes(), [torch.randn(1, 3, 6, 6)])


class Decoder(nn.Module):
    """A layer of a language model: embedding, rotary positions, causal attention, gated MLP."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(20, width)
        self.norm, self.last = nn.RMSNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 24), nn.Linear(width, 24)
        self.down = nn.Linear(24, width)

    def rotate(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        steps = torch.arange(x.shape[-2]).float()
        angles = torch.outer(steps, 10000 ** -(torch.arange(half) / half))
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        count, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(count, 3, self.heads, -1).permute(1, 2, 0, 3)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(y.transpose(0, 1).reshape(count, width))
        h = self.last(x)
        return x + self.down(F.silu(self.gate(h)) * F.gelu(self.up(h)))


def test_decoder_layer_with_dynamic_length() -> None:
    tokens = [[torch.randint(0, 20, (count,))] for count in (5, 11)]
    check(Decoder(), *tokens, dynamic=({0: Dim("length", min=2, max=64)},))


def test_transformer_encoder_and_lstm() -> None:
    check(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), [torch.randn(2, 4, 8)])
    lstm = nn.LSTM(4, 5, batch_first=True)
    lstm_output = Function(lambda x: lstm(x)[0])
    lstm_output.lstm = lstm
    check(lstm_output, [torch.randn(1, 3, 4)])


def test_indexing() -> None:
    def reads(x: Tensor, i: Tensor, j: Tensor) -> list[Tensor]:
        return [
            x.gather(1, i),
            x[j],
            x.index_select(1, j),
            x.cumsum(1),
            *x.sort(1, descending=True),
            *x.topk(2),
            x.argmax(1),
            *x.min(0),
            torch.where(x > 0, x, -x),
            x.masked_fill(x > 0.5, -1.0),
            x[:, 1:4:2],
            x.flip(1),
            x.roll(1, 0),
            x.tril(1),
            torch.cat([x, x[:1]], 0),
            torch.stack([x, x], 1),
            F.pad(x, (1, 2, 0, 1), value=3.0),
            F.one_hot(j, 6),
        ]

    def writes(x: Tensor, i: Tensor, j: Tensor) -> list[Tensor]:
        return [
            x.scatter(1, i, -x[:, :2]),
            x.index_put((j,), -x[:2]),
            x.index_put((j,), -x[:2], accumulate=True),
            x.index_copy(0, j, -x[:2]),
            torch.slice_scatter(x, x[:, :2] * 2, 1, 3, 5),
        ]

    i, j = torch.tensor([[0, 1], [2, 3], [4, 0], [1, 2]]), torch.tensor([3, 0])
    check(Function3(reads), [torch.randn(4, 5), i, j])
    check(Function3(writes), [torch.randn(4, 5), i, j])


def test_functions_of_floats() -> None:
    unary = [
        torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.tanh, torch.sigmoid, torch.erf,
        torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh,
        torch.cosh, torch.asinh, torch.atanh, torch.expm1, torch.log1p, torch.log2, torch.log10,
        torch.exp2, torch.floor, torch.ceil, torch.round, torch.trunc, torch.abs, torch.neg,
        torch.sign, torch.reciprocal, torch.isnan, torch.isinf, F.hardswish, F.hardsigmoid,
        F.leaky_relu, F.elu, F.mish, F.softplus, F.relu6, F.gelu, F.silu,
    ]  # fmt: skip
    check(Function(lambda x: [f(x) for f in unary]), [torch.rand(7) * 0.9 + 0.05])
    binary = [
        torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.atan2, torch.fmod,
        torch.remainder, torch.maximum, torch.minimum, torch.floor_divide, torch.eq, torch.ne,
        torch.lt, torch.ge,
    ]  # fmt: skip
    check(Function2(lambda x, y: [f(x, y) for f in binary]), [torch.rand(7), torch.rand(7) + 0.1])


def test_functions_of_integers() -> None:
    binary = [
        torch.add, torch.sub, torch.mul, torch.div, torch.fmod, torch.remainder, torch.maximum,
        torch.minimum, torch.floor_divide, torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor,
        torch.bitwise_left_shift, torch.bitwise_right_shift, torch.eq,
    ]  # fmt: skip
    check(
        Function2(lambda x, y: [f(x, y) for f in binary]),
        [torch.randint(-9, 9, (20,)), torch.randint(1, 4, (20,))],
    )


def test_element_types() -> None:
    kinds = [torch.int32, torch.float16, torch.float64, torch.bool, torch.uint8, torch.int8]
    check(Function(lambda x: [x.to(kind) for kind in kinds]), [torch.rand(9) * 9])
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 1e-2), (torch.float64, 1e-12)):
        operands = [torch.randn(3, 4, dtype=dtype), torch.randn(4, 5, dtype=dtype)]
        check(Function2(lambda x, y: (x @ y).softmax(-1)), operands, tolerance=tolerance)
    integers = [torch.randint(-128, 127, s, dtype=torch.int8) for s in ((32, 16), (16, 8))]
    check(Function2(lambda x, y: torch.ops.aten._int_mm(x, y)), integers)


def test_reductions_and_normalizations() -> None:
    norm, group = nn.InstanceNorm1d(4), nn.GroupNorm(2, 4)

    def reductions(x: Tensor) -> list[Tensor]:
        flat = x[0]
        return [
            flat.sum(), flat.mean(0), flat.prod(1), flat.var(1), flat.std(0), flat.norm(dim=1),
            flat.amax(0), flat.logsumexp(1), (flat > 0).any(1), (flat > 0).all(1),
            F.log_softmax(flat, -1), group(x), norm(x), torch.einsum("ij,kj->ik", flat, flat),
            torch.dot(flat[0], flat[1]), torch.mv(flat, flat[0]),
            torch.fake_quantize_per_tensor_affine(flat, 0.1, 3, -128, 127),
        ]  # fmt: skip

    module = Function(reductions)
    module.group = group
    check(module, [torch.randn(1, 4, 6)])


def test_data_dependent_shapes() -> None:
    check(Function(lambda x: x.nonzero()), [torch.tensor([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0]])])


def test_random_numbers_come_from_a_global() -> None:
    program = imported(Function(lambda x: torch.rand_like(x)), [torch.zeros(1000)])
    interpreter = Interpreter(program)
    zeros = np.zeros(1000, np.float32)
    first, second = interpreter.call(None, [zeros])[0], interpreter.call(None, [zeros])[0]
    assert (first >= 0).all()
    assert (first < 1).all()
    assert abs(first.mean() - 0.5) < 0.05
    assert not np.array_equal(first, second)
    assert np.array_equal(Interpreter(program).call(None, [zeros])[0], first)


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.short(x))


def test_a_resnet_8() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    check(network, [torch.randn(1, 3, 32, 32)])
