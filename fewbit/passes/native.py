"""The way of a program to native code, as a value that is read from top to bottom.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers that kernels compute, channels-last |
| `linalg` | loops over tensors, and calls of kernels |
| `memref` | loop nests as functions on memory; the entry calls one after another |
| `loops` | loops over scalars, split over threads |
| `llvm` | LLVM IR |
| `object` | machine code |
"""

from __future__ import annotations

from fewbit.passes.pipelines import (
    CPU_GENERIC,
    CPU_LINALG,
    CPU_LLVM,
    CPU_LOOPS,
    CPU_MEMORY,
    CPU_TENSORS,
    PLACED,
    STEP_BY_STEP,
    TO_CALLER_MEMORY,
    TO_KERNELS,
    TO_SHAPES,
)
from fewbit.pipeline.stage import Pipeline, Stage

REPEATS = ("outline-repeats",)
"""Parts that repeat are compiled once, but for a profile, which counts each, and for BLAS."""
FOR_ALL = "kernel"
"""The last stage that is the same for all processors."""


def native_pipeline(*, blas: bool = False, profile: bool = False) -> Pipeline:
    """Return the stages of `cpu`: with a BLAS library for matmuls, or with a profile of calls."""
    return Pipeline(
        (
            Stage("mico"),
            Stage("kernel", (*TO_KERNELS, "fold-weights", *([] if blas or profile else REPEATS))),
            Stage("linalg", _linalg(blas, profile)),
            Stage("memref", _memref(blas), form="upstream"),
            Stage("loops", _loops(profile), form="upstream"),
            Stage("llvm", (*CPU_LLVM, "keep-loops", "translate-to-llvm-ir"), ".ll", "other"),
            Stage("object", ("emit-object",), ".s", "other"),
        )
    )


def _linalg(blas: bool, profile: bool) -> tuple[str, ...]:
    return (
        *(["im2col"] if blas else []),
        "assert-sizes{kernels=true}",
        *(["note-layer-depths"] if profile else []),
        "call-kernels",
        "read-packed-tables",
        *STEP_BY_STEP,
        *CPU_LINALG,
        "fold-weights",
        "assert-sizes",
        *([] if blas else ["call-contractions"]),
    )


def _memref(blas: bool) -> tuple[str, ...]:
    return (
        *TO_SHAPES,
        *TO_CALLER_MEMORY,
        *CPU_GENERIC,
        *(["name-matmuls"] if blas else []),
        *CPU_TENSORS,
        *(["release-matmuls"] if blas else []),
        *CPU_MEMORY,
        *(["use-blas"] if blas else []),
        *PLACED,
        "func.func(linalg-generalize-named-ops)",
        "cse",
        "collapse-loops",
        "reassociate-sums",
        "generalize-copies",
        "outline-loops",
        "plan-repeats",
        "plan-memory",
        "add-shape-function",
    )


def _loops(profile: bool) -> tuple[str, ...]:
    return (
        "tile-loops",
        *CPU_LOOPS,
        "share-work{wait-always=true}" if profile else "share-work",
        "canonicalize",
        "cse",
        *(["count-cycles"] if profile else []),
    )
