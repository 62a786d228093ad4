"""Passes, one per file, by name.

The name of a pass is the name of its file and of its class: `fold-constants` is `FoldConstants` in
`fold_constants.py`. `canonicalize`, `cse` and `dce` are xDSL's own and are not repeated here.
"""

from __future__ import annotations

NAMES = (
    "constants-to-arith",
    "drop-empty-tensors",
    "expand-math",
    "fold-batch-norm",
    "fold-constants",
    "fold-flatten",
    "fold-weights",
    "fuse-epilogue",
    "fuse-quantize",
    "fuse-requantize",
    "hoist-quantize",
    "im2col",
    "inline",
    "integer-only",
    "lower-activation-quant",
    "lower-attention",
    "lower-bit-conv",
    "lower-bit-linear",
    "lower-bundles",
    "lower-elementwise",
    "lower-embedding",
    "lower-few-bit-types",
    "lower-kernel",
    "lower-layout",
    "lower-norm",
    "lower-pool",
    "lower-quantization",
    "lower-scatter",
    "name-windows",
    "outline-subgraph",
    "place-devices",
    "propagate-layout",
    "select-kernels",
    "symbol-dce",
    "trim-windows",
    "unpack-weights",
    "widen-sums",
)
