"""The way of a program to a bare-metal executable: the native one, for one thread.

What differs: integer matmuls call functions with dot instructions, all other ops are loops; sizes
have the processor's own width, or 64-bit arithmetic in pairs of registers would be everywhere;
parts that repeat are not shared, because what is called knows its constants; and there is nothing
that a system provides.
"""

from __future__ import annotations

from fewbit.passes.native import native_pipeline
from fewbit.passes.pipelines import BARE_METAL_LINALG, CPU_LLVM, CPU_LOOPS, TO_KERNELS
from fewbit.pipeline.stage import Pipeline, Stage

SIZED = (
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
)
"""Passes that are told how wide sizes are."""
VECTOR_BITS = 32


def bare_metal_pipeline(xlen: int, call: str, *last: str) -> Pipeline:
    """Return the stages for a processor of this width; the pass `call` calls its matmuls.

    The passes `last` are those that find more of them among loops over tensors.
    """
    linalg = (
        "assert-sizes{kernels=true}",
        call,
        *BARE_METAL_LINALG,
        "fold-weights",
        "assert-sizes",
        *last,
    )
    # No tiles: they are for vectors, whose lowering has sizes of 64 bits.
    loops = (*CPU_LOOPS, "canonicalize", "cse")
    width = f"{{index-bitwidth={xlen}}}"
    options = {**dict.fromkeys(SIZED, width), "mark-loops": f"{{vector-bits={VECTOR_BITS}}}"}
    llvm = (name + options.get(name, "") for name in CPU_LLVM)
    return native_pipeline().replace_stages(
        Stage("kernel", (*TO_KERNELS, "fold-weights")),
        Stage("linalg", linalg),
        Stage("loops", loops, form="upstream"),
        Stage("llvm", (*llvm, "translate-to-bare-metal-ir"), ".ll", "other"),
    )
