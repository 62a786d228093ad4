"""The way of a program to a microcontroller: the bare-metal one, with kernels and sizes of its own.

What differs: a batch is one sample, parts that repeat are not shared, because kernels know their
constants, and requantization in integers is fused into the layers in front of it.
"""

from __future__ import annotations

from fewbit.passes.bare_metal import bare_metal_pipeline
from fewbit.passes.pipelines import TO_KERNELS
from fewbit.pipeline.stage import Pipeline

_OPTIONS = {"fuse-requantize": "fuse-requantize{fixed-point=true}"}
_TO_IR = "translate-to-bare-metal-ir"


def mcu_pipeline() -> Pipeline:
    """Return the stages."""
    pipeline = bare_metal_pipeline(32, "call-mcu-kernels")
    kernel = ("inline", "fix-sizes", *(_OPTIONS.get(p, p) for p in TO_KERNELS), "fold-weights")
    llvm = (p for p in pipeline["llvm"].passes if p != _TO_IR)
    return pipeline.with_passes("kernel", kernel).with_passes(
        "llvm", (*llvm, "translate-to-mcu-ir")
    )
