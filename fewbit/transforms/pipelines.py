"""Pipelines as data: the names of their passes, in the order in which they run."""

from __future__ import annotations

from typing import Final

LOWER_MICO: Final[tuple[str, ...]] = (
    # A layer that quantizes its input becomes a layer on integers.
    "lower-activation-quant",
    # Layers and all that stands between them become loops over tensors.
    "lower-bit-linear",
    "lower-bit-conv",
    "lower-embedding",
    "lower-attention",
    "lower-elementwise",
    "lower-norm",
    "lower-pool",
    "lower-layout",
    "lower-quantization",
    "lower-bundles",
    # What is left of few-bit types is in constants, arguments and results.
    "unpack-weights",
    "lower-few-bit-types",
)
"""From `mico` to linalg, tensor, arith and math; constants stay `mico.constant`, of plain types."""

FLOAT_PASSES: Final[tuple[str, ...]] = (
    "lower-attention",
    "lower-elementwise",
    "lower-norm",
    "lower-pool",
)

LOWER_MICO_PRECISELY: Final[tuple[str, ...]] = tuple(
    f"{name}{{precise=true}}" if name in FLOAT_PASSES else name for name in LOWER_MICO
)
"""The same, with float ops in f64 and rounded once: equal to the interpreter to the bit."""
