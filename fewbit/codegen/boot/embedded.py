"""What a program that boots runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.program.signature import Signature, TensorSpec

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Embedded:
    """Arrays that a program has inside."""

    inputs: Sequence[Array]
    outputs: Sequence[tuple[int, int]]
    """Elements of each output, and their bytes."""
    arena_bytes: int
    expected: Sequence[Array] | None = None


def make_up_inputs(signature: Signature) -> list[Array]:
    """Return inputs of the sizes that are known, the same at every call; others are of size 1."""
    random = np.random.default_rng(0)
    return [_make_up(random, spec) for spec in signature.inputs]


def _make_up(random: np.random.Generator, spec: TensorSpec) -> Array:
    shape = [size or 1 for size in spec.shape or ()]
    if spec.dtype.kind == "f":
        return random.standard_normal(shape).astype(spec.dtype)
    return np.zeros(shape, spec.dtype)
