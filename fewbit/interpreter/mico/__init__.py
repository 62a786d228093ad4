"""The mico dialect: what `fewbit.numerics` says, file by file as the dialect itself."""

from __future__ import annotations

from fewbit.interpreter.mico import (
    attention,
    constants,
    elementwise,
    layers,
    layout,
    normalization,
    pooling,
    quantization,
    rotation,
)

__all__ = [
    "attention",
    "constants",
    "elementwise",
    "layers",
    "layout",
    "normalization",
    "pooling",
    "quantization",
    "rotation",
]
