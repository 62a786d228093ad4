"""Batch norms, recognized by what they compute.

Frameworks write `(x - mean) * rsqrt(variance + eps) * weight + bias` in different orders and with
some of the arithmetic done beforehand. All of them are x * factor + offset, channel by channel. The
two are computed in float64; if four of the constants that they come from give just these numbers
as a batch norm, they are its parameters, so that folding it later is as exact as for PyTorch. If
none do, factor and offset are parameters themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.dense import Array

PARAMETERS = 4
NEAR = 1e-12
"""How far, relatively, numbers in float64 may be apart that are the same."""


@dataclass(frozen=True)
class Step:
    """One op on a layer's result: add, subtract, `from` (a constant minus it), multiply, divide."""

    kind: str
    constant: Constant


@dataclass(frozen=True)
class BatchNorm:
    weight: Array
    bias: Array
    mean: Array
    variance: Array
    eps: float = 0.0
    names: tuple[str | None, ...] = (None,) * PARAMETERS

    def parameters(self) -> Iterator[tuple[str, Array, str | None]]:
        words = ("weight", "bias", "mean", "variance")
        arrays = (self.weight, self.bias, self.mean, self.variance)
        yield from zip(words, arrays, self.names, strict=True)


def batch_norm_of(steps: Sequence[Step], of_channels: Callable[[Array], Array]) -> BatchNorm:
    factor, offset = _affine(steps, of_channels)
    count = len(offset)
    leaves = list(dict.fromkeys(leaf for step in steps for leaf in step.constant.leaves()))
    vectors = [leaf for leaf in leaves if leaf.type.size == count and leaf.type.rank]
    if len(vectors) > PARAMETERS:
        vectors = [leaf for leaf in vectors if leaf.name is not None or leaf.splat is None]
    splats = [float(leaf.splat) for leaf in leaves if leaf.splat is not None]
    numbers = sorted({number for number in splats if 0 < number < 1})
    norm = _recognize(factor, offset, vectors, numbers)
    zeros, ones = np.zeros(count), np.ones(count)
    return norm or BatchNorm(factor, offset, zeros, ones)


def _affine(steps: Sequence[Step], of_channels: Callable[[Array], Array]) -> tuple[Array, Array]:
    factor, offset = np.float64(1), np.float64(0)
    for step in steps:
        c = of_channels(step.constant.precise)
        if step.kind == "add":
            factor, offset = factor + 0 * c, offset + c
        elif step.kind == "subtract":
            factor, offset = factor + 0 * c, offset - c
        elif step.kind == "from":
            factor, offset = -factor + 0 * c, c - offset
        elif step.kind == "multiply":
            factor, offset = factor * c, offset * c
        else:
            factor, offset = factor / c, offset / c
    return np.asarray(factor), np.asarray(offset)


def _recognize(
    factor: Array, offset: Array, vectors: Sequence[Constant], numbers: Sequence[float]
) -> BatchNorm | None:
    """The assignment of constants that gives factor and offset; weight or bias may be absent."""
    count = len(factor)
    if not 2 <= len(vectors) <= PARAMETERS:
        return None
    one = Constant.of(np.ones(count, np.float32))
    none = Constant.of(np.zeros(count, np.float32))
    absent = PARAMETERS - len(vectors)
    for roles in _roles(vectors, one, none, absent):
        weight, bias, mean, variance = (role.precise.reshape(-1) for role in roles)
        if (variance < 0).any() or not _near(bias - mean * factor, offset):
            continue
        for eps in (0.0, *numbers):
            if _near(weight / np.sqrt(variance + eps), factor):
                weight, bias, mean, variance = (role.array.reshape(-1) for role in roles)
                names = tuple(role.name for role in roles)
                return BatchNorm(weight, bias, mean, variance, _as_written(eps), names)
    return None


def _roles(
    vectors: Sequence[Constant], one: Constant, none: Constant, absent: int
) -> Iterator[tuple[Constant, Constant, Constant, Constant]]:
    choices = {0: [()], 1: [(one,), (none,)], 2: [(one, none)]}[absent]
    for given in permutations(vectors):
        for missing in choices:
            rest = list(given)
            weight = one if one in missing else rest.pop()
            bias = none if none in missing else rest.pop()
            mean, variance = rest
            yield weight, bias, mean, variance


def _near(a: Array, b: Array) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=NEAR, atol=NEAR * float(np.abs(b).max(initial=0))))


def _as_written(number: float) -> float:
    """0.001 of the float32 that is nearest to it."""
    return float(str(np.float32(number)))
