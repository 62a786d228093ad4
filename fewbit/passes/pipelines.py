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
    "lower-hadamard",
    "lower-pool",
    "lower-layout",
    "lower-quantization",
    "lower-bundles",
    # What is left of few-bit types is in constants, arguments and results.
    "unpack-weights",
    "lower-few-bit-types",
)
"""From `mico` to linalg, tensor, arith and math; constants stay `mico.constant`, of plain types."""

# Parts of pipelines that targets share. Passes of ours run on xDSL until `to-upstream`; after it,
# on the bindings of the torch-mlir wheel, among upstream's.

TO_KERNELS: Final[tuple[str, ...]] = (
    "inline",
    "fold-batch-norm",
    "select-kernels",
    "propagate-layout",
    "fuse-epilogue",
    "cse",
    "hoist-quantize",
    "fuse-quantize",
    "fuse-requantize",
    "cse",
    "fold-flatten",
)
"""Layers as ops that kernels compute, channels-last from end to end."""

STEP_BY_STEP: Final[tuple[str, ...]] = ("lower-scan", "lower-sort")
"""Loops in which each step needs the one before: for processors, not where launches are planned."""

LOWER_OTHERS: Final[tuple[str, ...]] = (
    *LOWER_MICO,
    "lower-scatter",
    "drop-empty-tensors",
    "trim-windows",
    "widen-sums",
    "expand-math",
    "canonicalize",
)
CPU_LINALG: Final[tuple[str, ...]] = ("lower-kernel", *LOWER_OTHERS)
"""Everything that no kernel is called for, as loops over tensors."""

BARE_METAL_LINALG: Final[tuple[str, ...]] = (*STEP_BY_STEP, *CPU_LINALG)

IREE_LINALG: Final[tuple[str, ...]] = (
    "name-windows",
    "lower-kernel",
    "lower-attention{fused=false}",
    *LOWER_MICO,
    "drop-empty-tensors",
    "trim-windows",
    "widen-sums",
    "expand-math",
    "canonicalize",
)
"""For IREE: its strategies know convolutions and pooling by their names, matmuls by their ops."""

TO_SHAPES: Final[tuple[str, ...]] = ("refuse-foreign", "rename-entry", "make-shape-function")
"""The shape function is taken from the program while it is on tensors."""

TO_CALLER_MEMORY: Final[tuple[str, ...]] = (
    "drop-asserts",
    "carry-in-place",
    "bound-lookups",
    "fill-splats",
    "bind-memory",
    "to-upstream",
)
"""Inputs, outputs and weights become memory of the caller."""

CPU_GENERIC: Final[tuple[str, ...]] = (
    "canonicalize",
    "func.func(linalg-generalize-named-ops)",
)
"""One form for all ops of linalg.

From here until tensors are memory, `cse` must not run: it would move the reads of a kernel's inputs
to where another kernel read them, and bufferization might then overwrite them too early.
"""

CPU_TENSORS: Final[tuple[str, ...]] = (
    "func.func(linalg-fuse-elementwise-ops)",
    "func.func(linalg-fold-unit-extent-dims)",
    "canonicalize",
    "resolve-ranked-shaped-type-result-dims",
    "canonicalize",
)
"""Producers and consumers fused, dimensions of size 1 dropped, sizes traced back to inputs."""

CPU_MEMORY: Final[tuple[str, ...]] = (
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries=true"
    " function-boundary-type-conversion=identity-layout-map}",
    "canonicalize",
    "cse",
    "resolve-ranked-shaped-type-result-dims",
    "resolve-shaped-type-result-dims",
    "canonicalize",
    "cse",
)
"""Tensors become memory."""

PLACED: Final[tuple[str, ...]] = (
    "order-outputs",
    "place-outputs",
    "copies-to-linalg",
    "measure-before-collapse",
)
"""Outputs are computed in their memory; what is copied, is copied by loops."""

CPU_TILING: Final[tuple[str, ...]] = ("linalg", "affine")
"""Where loop nests may be tiled: as ops of linalg, and as affine loops what these cannot be."""

CPU_TILED_LINALG: Final[tuple[str, ...]] = (
    "canonicalize",
    "cse",
    # Remainders are peeled off loops, which then have tiles of one size.
    "scf-for-loop-peeling",
    "canonicalize",
    "cse",
)
"""A function that holds a nest in tiles, as views and a smaller op of linalg."""

CPU_TILED_LOOPS: Final[tuple[str, ...]] = (
    "convert-linalg-to-loops",
    "convert-vector-to-scf{full-unroll=true}",
    "canonicalize",
    "cse",
    "loop-invariant-code-motion",
)
"""What is in a tile, as loops."""

CPU_TILED_AFFINE: Final[tuple[str, ...]] = (
    "convert-linalg-to-affine-loops",
    "affine-loop-tile{{tile-sizes={tiles}}}",
    "affine-loop-normalize",
)
"""A function that holds a nest, as affine loops in tiles of the given sizes."""

CPU_LOOPS: Final[tuple[str, ...]] = (
    "func.func(convert-linalg-to-affine-loops)",
    "func.func(affine-loop-invariant-code-motion)",
    "func.func(affine-scalrep)",
    "lower-affine",
    # Few processors compute with 16-bit floats: in f32, and rounded after each step.
    "func.func(arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32})",
    "func.func(arith-expand{include-bf16=true})",
)
"""Each function that holds a loop nest: affine loops, improved, then plain loops."""

CPU_LLVM: Final[tuple[str, ...]] = (
    # Views become arithmetic on offsets, sizes and strides.
    "expand-strided-metadata",
    "lower-affine",
    "guard-divisions",
    "arith-expand",
    "convert-scf-to-cf",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "convert-arith-to-llvm",
    "convert-vector-to-llvm",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-ub-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
    "add-in-lanes",
    "booleans-to-bytes",
    "mark-loops",
)
"""The llvm dialect, which is translated to LLVM IR."""

CUDA_LOOPS: Final[tuple[str, ...]] = (
    "func.func(linalg-generalize-named-ops)",
    "func.func(arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32})",
    "canonicalize",
    "cse",
)
"""For GPUs: one form for all loops on memory; 16-bit floats are computed with in f32."""
