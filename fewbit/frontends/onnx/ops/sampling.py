"""GridSample: elements at places that the program computes."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from fewbit.frontends.onnx.table import Call, op

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_A = -0.75


class Sampler:
    def __init__(self, call: Call, x: Tensor) -> None:
        self.align = bool(call.attr("align_corners", 0))
        self.padding = call.attr("padding_mode", "zeros")
        self.sizes = [int(size) for size in x.shape[2:]]
        self.x = x.flatten(2)

    def place(self, at: Tensor, size: int) -> Tensor:
        """-1 to 1 as a place among `size` elements."""
        if self.align:
            return (at + 1) / 2 * (size - 1)
        return ((at + 1) * size - 1) / 2

    def bound(self, at: Tensor, size: int) -> Tensor:
        if self.padding == "border":
            return torch.clamp(at, 0, size - 1)
        if self.padding == "reflection":
            low, high = (0.0, size - 1.0) if self.align else (-0.5, size - 0.5)
            return _reflect(at, low, high)
        return at

    def gather(self, places: list[Tensor]) -> Tensor:
        """The elements at whole places [N, ...], as [N, C, ...]; 0 beyond the edges."""
        flat = torch.zeros_like(places[0], dtype=torch.int64)
        inside = torch.ones_like(places[0], dtype=torch.bool)
        for place, size in zip(places, self.sizes, strict=True):
            inside = inside & (place >= 0) & (place <= size - 1)
            flat = flat * size + torch.clamp(place, 0, size - 1).to(torch.int64)
        n, channels = self.x.shape[:2]
        index = flat.reshape([n, 1, -1]).expand(n, channels, -1)
        elements = torch.gather(self.x, 2, index).reshape([n, channels, *flat.shape[1:]])
        return torch.where(inside.unsqueeze(1), elements, torch.zeros_like(elements))


def _reflect(at: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span == 0:
        return torch.full_like(at, low)
    distance = torch.abs(at - low)
    periods = torch.floor(distance / span)
    remainder = distance - periods * span
    odd = periods - 2 * torch.floor(periods / 2) > 0
    return torch.where(odd, high - remainder, low + remainder)


def _cubic(d: Tensor) -> Tensor:
    near = ((_A + 2) * d - (_A + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * _A - 4 * _A
    return torch.where(d <= 1, near, far)


@op("GridSample")
def grid_sample(call: Call, x: Tensor, grid: Tensor) -> Tensor:
    sampler = Sampler(call, x)
    mode = call.attr("mode", "linear")
    mode = _MODES.get(mode, mode)
    rank = len(sampler.sizes)
    # The last axis comes first in the grid.
    places = [sampler.place(grid[..., rank - 1 - i], size) for i, size in enumerate(sampler.sizes)]
    if mode == "cubic":
        return interpolate(sampler, places, [-1, 0, 1, 2], cubic=True)
    places = [sampler.bound(p, s) for p, s in zip(places, sampler.sizes, strict=True)]
    if mode == "nearest":
        rounded = [torch.round(p) for p in places]
        if sampler.padding == "reflection":
            rounded = [sampler.bound(p, s) for p, s in zip(rounded, sampler.sizes, strict=True)]
        return sampler.gather(rounded)
    return interpolate(sampler, places, [0, 1], cubic=False)


def interpolate(sampler: Sampler, places: list[Tensor], offsets: list[int], cubic: bool) -> Tensor:
    bases = [torch.floor(p) for p in places]
    total: Tensor | None = None
    for chosen in product(offsets, repeat=len(places)):
        weight = torch.ones_like(places[0])
        at: list[Tensor] = []
        for offset, place, base, size in zip(chosen, places, bases, sampler.sizes, strict=True):
            distance = torch.abs(place - (base + offset))
            weight = weight * (_cubic(distance) if cubic else 1 - distance)
            whole = base + offset
            at.append(sampler.bound(whole, size) if cubic or sampler.padding != "zeros" else whole)
        part = sampler.gather(at) * weight.unsqueeze(1)
        total = part if total is None else total + part
    assert total is not None
    return total
