"""The way of a program to a GPU, as a value that is read from top to bottom.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers that kernels compute, channels-last |
| `linalg` | loops over tensors, and calls of kernels |
| `memref` | loops on memory, all of it planned |
| `cuda` | CUDA C++ of the loops; layers have kernels of their own |

Until memory is planned this is the way to native code. Then the entry is executed on the shapes of
its inputs, and what is left to do is the plan.
"""

from __future__ import annotations

from fewbit.passes.pipelines import (
    CPU_GENERIC,
    CPU_LINALG,
    CPU_MEMORY,
    CPU_TENSORS,
    CUDA_LOOPS,
    PLACED,
    TO_CALLER_MEMORY,
    TO_KERNELS,
    TO_SHAPES,
)
from fewbit.pipeline.stage import Pipeline, Stage

LINALG = (
    "assert-sizes{kernels=true}",
    "call-layers",
    *CPU_LINALG,
    "fold-weights",
    "assert-sizes",
)
MEMREF = (
    *TO_SHAPES,
    "find-output-shapes",
    *TO_CALLER_MEMORY,
    *CPU_GENERIC,
    *CPU_TENSORS,
    *CPU_MEMORY,
    *PLACED,
    *CUDA_LOOPS,
    "collapse-loops",
    "plan-memory",
)
PIPELINE = Pipeline(
    (
        Stage("mico"),
        # Weights are not folded: a layer still shows its few-bit weights.
        Stage("kernel", ("inline", "refuse-run-sizes", *TO_KERNELS, "join-matmuls")),
        Stage("linalg", LINALG),
        Stage("memref", MEMREF, form="upstream"),
        Stage("cuda", ("plan-launches",), ".cu", "other"),
    )
)
