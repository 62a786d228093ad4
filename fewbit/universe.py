"""fewbit's entry in the `xdsl.universe`: its dialects and passes, loaded when first used.

Every tool that reads the universe sees them: `fewbit-opt`, `xdsl-opt`, and any plug-in's tool.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe

from fewbit.pipeline.loaders import loaders

ROOMS = {
    "fewbit.passes.graph": (
        "fold-batch-norm",
        "fold-constants",
        "fold-layer-weights",
        "fold-weights",
        "inline",
        "outline-repeats",
        "outline-subgraph",
        "place-devices",
        "recognize-layers",
        "split-parts",
        "symbol-dce",
    ),
    "fewbit.passes.kernel": (
        "call-contractions",
        "call-kernels",
        "fold-flatten",
        "fuse-epilogue",
        "fuse-quantize",
        "fuse-requantize",
        "hoist-quantize",
        "im2col",
        "note-layer-depths",
        "propagate-layout",
        "read-packed-tables",
        "select-kernels",
    ),
    "fewbit.passes.linalg": (
        "assert-sizes",
        "constants-to-arith",
        "drop-empty-tensors",
        "expand-math",
        "lower-attention",
        "lower-bit-conv",
        "lower-bit-linear",
        "lower-elementwise",
        "lower-embedding",
        "lower-hadamard",
        "lower-kernel",
        "lower-layout",
        "lower-norm",
        "lower-pool",
        "lower-scan",
        "lower-scatter",
        "lower-sort",
        "name-windows",
        "trim-windows",
        "widen-sums",
    ),
    "fewbit.passes.memory": (
        "bind-memory",
        "bound-lookups",
        "carry-in-place",
        "drop-asserts",
        "fill-splats",
        "make-shape-function",
        "refuse-foreign",
        "rename-entry",
    ),
    "fewbit.passes.quant": (
        "integer-only",
        "lower-activation-quant",
        "lower-bundles",
        "lower-few-bit-types",
        "lower-quantization",
        "unpack-weights",
    ),
    "fewbit.targets.cuda": (
        "call-layers",
        "find-output-shapes",
        "join-matmuls",
    ),
    "fewbit.targets.gemmini": (
        "call-streams",
        "rejoin-devices",
    ),
    "fewbit.targets.iree": (
        "bind-parameters",
        "dispatch-kernels",
        "legalize-for-iree",
        "separate-dispatches",
    ),
    "fewbit.targets.mcu": (
        "call-mcu-kernels",
        "fix-sizes",
    ),
    "fewbit.targets.vexii": ("call-dots",),
}
"""The passes of each package, which are loaded when they are asked for."""


def _graph() -> Dialect:
    from fewbit.dialects.graph import Graph

    return Graph


def _kernel() -> Dialect:
    from fewbit.dialects.kernel import Kernel

    return Kernel


def _mico() -> Dialect:
    from fewbit.dialects.mico import Mico

    return Mico


UNIVERSE = Universe(
    all_dialects={"graph": _graph, "kernel": _kernel, "mico": _mico},
    all_passes={k: v for room, names in ROOMS.items() for k, v in loaders(room, names).items()},
)
