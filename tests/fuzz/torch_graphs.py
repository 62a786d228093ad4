# pyright: basic
"""Random PyTorch modules: a seed is a module and an input.

A module is a list of steps, each a function or a layer of earlier values. Steps are tried on the
input while the module grows, and those that PyTorch refuses are left out, so that kinds need not
compute shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fewbit.base.typed_torch import from_numpy, manual_seed

MOST = 4096
SIZES = (1, 2, 3, 4, 5, 7, 8)
Function = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """A function, or the layer of a name, of earlier values."""

    function: Function | str
    arguments: tuple[int, ...]


class RandomModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.layers = nn.ModuleDict()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        values, read = [x], set[int]()
        for step in self.steps:
            values.append(self.apply_step(step, values))
            read.update(step.arguments)
        ends = tuple(v for i, v in enumerate(values) if i not in read and i > 0)
        return ends or (values[0] + 1,)

    def apply_step(self, step: Step, values: Sequence[Tensor]) -> Tensor:
        given = [values[i] for i in step.arguments]
        if isinstance(step.function, str):
            return self.layers[step.function](*given)
        return step.function(*given)


UNARY: tuple[Function, ...] = (
    torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.abs, torch.neg, torch.sin, torch.cos,
    torch.erf, torch.floor, torch.round, torch.sign, torch.square, torch.atan, F.gelu, F.silu,
    F.softplus, F.hardswish, F.elu, F.leaky_relu, F.mish, F.relu6, F.logsigmoid, torch.expm1,
    lambda x: torch.sqrt(x.abs() + 0.5), lambda x: torch.log1p(x.abs()),
    lambda x: torch.rsqrt(x.abs() + 0.5), lambda x: torch.clamp(x, -0.7, 0.9),
    lambda x: torch.where(x > 0.1, x, -x), lambda x: x.masked_fill(x > 0, 0.5),
    lambda x: torch.remainder(x, 0.75), lambda x: torch.fmod(x, 0.75), lambda x: x.pow(3),
    lambda x: (x > 0).float(), lambda x: torch.nan_to_num(x), lambda x: x.to(torch.float16).float(),
)  # fmt: skip
BINARY: tuple[Function, ...] = (
    torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda x, y: x / (y.abs() + 0.5),
    lambda x, y: torch.lerp(x, y, 0.25), lambda x, y: torch.cat([x, y], -1),
    lambda x, y: torch.stack([x, y], 0), lambda x, y: torch.addcmul(x, x, y, value=0.5),
    lambda x, y: torch.atan2(x, y.abs() + 0.5), lambda x, y: torch.matmul(x, y.transpose(-1, -2)),
    lambda x, y: torch.einsum("...i,...i->...", x, y), lambda x, y: torch.hypot(x, y),
)  # fmt: skip


def random_torch(seed: int, most_steps: int = 10) -> tuple[RandomModule, Tensor]:
    """Return the module of a seed, and an input."""
    rng = np.random.default_rng(seed)
    manual_seed(seed)
    shape = tuple(int(rng.choice(SIZES)) for _ in range(int(rng.choice((1, 2, 3, 4, 4)))))
    x = from_numpy(rng.standard_normal(shape).astype(np.float32))
    module, values = RandomModule().eval(), [x]
    wanted = int(rng.integers(1, most_steps + 1))
    for _ in range(10 * wanted):
        if len(module.steps) >= wanted:
            break
        step = _random_step(rng, module, values)
        try:
            with torch.no_grad():
                result = module.apply_step(step, values)
        except (RuntimeError, IndexError, ValueError, AssertionError):
            continue
        if result.dtype == torch.float32 and 0 < prod(result.shape) <= MOST:
            module.steps.append(step)
            values.append(result)
    return module, x


def _random_step(rng: np.random.Generator, module: RandomModule, values: list[Tensor]) -> Step:
    late = len(values) - 1 - min(int(rng.geometric(0.4)) - 1, len(values) - 1)
    match int(rng.integers(4)):
        case 0:
            return Step(UNARY[int(rng.integers(len(UNARY)))], (late,))
        case 1:
            function = BINARY[int(rng.integers(len(BINARY)))]
            return Step(function, (late, int(rng.integers(len(values)))))
        case 2:
            return Step(_random_movement(rng, values[late]), (late,))
        case _:
            name = f"layer{len(module.layers)}"
            module.layers[name] = _random_layer(rng, values[late]).eval()
            return Step(name, (late,))


def _random_movement(rng: np.random.Generator, x: Tensor) -> Function:
    """Return a function that moves, reduces or selects elements."""
    dim = int(rng.integers(max(x.dim(), 1)))
    other = int(rng.integers(max(x.dim(), 1)))
    size = x.shape[dim] if x.dim() else 1
    first, count = int(rng.integers(size)), int(rng.integers(1, size + 1))
    indices = from_numpy(rng.integers(0, size, 3))
    pads = [int(n) for n in rng.integers(0, 2, 2)]
    options: list[Function] = [
        lambda v: v.sum(dim), lambda v: v.mean(dim, keepdim=True), lambda v: v.amax(dim),
        lambda v: v.var(dim, unbiased=False), lambda v: v.prod(dim), lambda v: v.logsumexp(dim),
        lambda v: torch.softmax(v, dim), lambda v: torch.log_softmax(v, dim),
        lambda v: torch.cumsum(v, dim), lambda v: torch.flip(v, [dim]), lambda v: v.norm(dim=dim),
        lambda v: torch.roll(v, 1, dim), lambda v: v.transpose(dim, other).contiguous(),
        lambda v: v.unsqueeze(dim), lambda v: v.squeeze(dim), lambda v: v.flatten(dim),
        lambda v: v.narrow(dim, first, size - first), lambda v: v.topk(count, dim)[0],
        lambda v: v.sort(dim)[0], lambda v: v.argsort(dim).float(), lambda v: v[..., ::2],
        lambda v: v.index_select(dim, indices), lambda v: v.argmax(dim).float(),
        lambda v: F.pad(v, pads), lambda v: F.pad(v, pads, mode="reflect"),
        lambda v: v.repeat_interleave(2, dim), lambda v: torch.tril(v), lambda v: torch.diff(v, dim=dim),
        lambda v: v.unfold(dim, min(2, size), 1), lambda v: v.expand(2, *v.shape).clone(),
        lambda v: F.normalize(v, dim=dim), lambda v: v.chunk(2, dim)[-1],
        lambda v: F.interpolate(v, scale_factor=2), lambda v: F.adaptive_avg_pool2d(v, 3),
        lambda v: F.scaled_dot_product_attention(v, v, v),
    ]  # fmt: skip
    return options[int(rng.integers(len(options)))]


def _random_layer(rng: np.random.Generator, x: Tensor) -> nn.Module:
    """Return a layer that takes such a tensor, if its rank is one that layers take."""
    last = x.shape[-1] if x.dim() else 1
    channels = x.shape[1] if x.dim() > 1 else 1
    out, kernel = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    stride, pad, dilation = (
        int(rng.integers(1, 3)),
        int(rng.integers(0, 2)),
        int(rng.integers(1, 3)),
    )
    groups = channels if rng.random() < 0.3 else 1
    conv: dict[str, Any] = {
        "stride": stride,
        "padding": pad,
        "dilation": dilation,
        "groups": groups,
    }
    options: list[Any] = [
        lambda: nn.Linear(last, out), lambda: nn.LayerNorm(last), lambda: nn.RMSNorm(last),
        lambda: nn.Conv1d(channels, out * groups, kernel, **conv),
        lambda: nn.Conv2d(channels, out * groups, kernel, **conv),
        lambda: nn.ConvTranspose2d(channels, out, kernel, stride),
        lambda: nn.BatchNorm1d(channels), lambda: nn.BatchNorm2d(channels),
        lambda: nn.GroupNorm(1, channels), lambda: nn.InstanceNorm2d(channels),
        lambda: nn.MaxPool2d(kernel, stride, min(pad, kernel // 2)),
        lambda: nn.AvgPool2d(kernel, stride, min(pad, kernel // 2)),
        lambda: nn.MaxPool1d(kernel, stride), lambda: nn.AdaptiveAvgPool1d(2),
        lambda: nn.PReLU(), lambda: nn.PixelShuffle(1), lambda: nn.ChannelShuffle(1),
    ]  # fmt: skip
    return options[int(rng.integers(len(options)))]()
