"""fewbit's dialects and passes, which entry points name, loaded when first used.

What is in `UNIVERSE` is seen by every tool that reads the `xdsl.universe`: `fewbit-opt`, `xdsl-opt`
and any plug-in's tool. xDSL has no place for passes on upstream's bindings and for conversions, so
these are a table of their own, in the group `fewbit.passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
        "refuse-run-sizes",
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
    "fewbit.targets.vexii": (
        "call-dot-contractions",
        "call-dots",
    ),
    "fewbit.targets.wasm": ("call-wasm-kernels",),
}
"""The passes of each package on xDSL, which are loaded when they are asked for."""

BINDINGS_ROOMS = {
    "fewbit.passes.blas": (
        "name-matmuls",
        "release-matmuls",
        "use-blas",
    ),
    "fewbit.passes.llvm": (
        "add-in-lanes",
        "booleans-to-bytes",
        "emit-object",
        "guard-divisions",
        "keep-loops",
        "mark-loops",
        "translate-to-bare-metal-ir",
        "translate-to-llvm-ir",
    ),
    "fewbit.passes.loops": (
        "collapse-loops",
        "count-cycles",
        "generalize-copies",
        "outline-loops",
        "reassociate-sums",
        "share-work",
        "tile-loops",
    ),
    "fewbit.passes.memory": (
        "add-shape-function",
        "copies-to-linalg",
        "measure-before-collapse",
        "order-outputs",
        "place-outputs",
        "plan-memory",
        "plan-repeats",
    ),
    "fewbit.pipeline": ("to-upstream",),
    "fewbit.targets.bitfusion": ("to-blocks",),
    "fewbit.targets.cuda": ("plan-launches",),
    "fewbit.targets.iree": ("to-iree-source",),
    "fewbit.targets.mcu": ("translate-to-mcu-ir",),
    "fewbit.targets.wasm": ("translate-to-wasm-ir",),
}
"""Passes on upstream's bindings, and conversions, by the package that holds them."""


def _graph() -> Dialect:
    from fewbit.dialects.graph import Graph

    return Graph


def _kernel() -> Dialect:
    from fewbit.dialects.kernel import Kernel

    return Kernel


def _mico() -> Dialect:
    from fewbit.dialects.mico import Mico

    return Mico


def _passes(rooms: Mapping[str, Sequence[str]]) -> dict[str, Callable[[], Any]]:
    return {k: v for room, names in rooms.items() for k, v in loaders(room, names).items()}


UNIVERSE = Universe(
    all_dialects={"graph": _graph, "kernel": _kernel, "mico": _mico}, all_passes=_passes(ROOMS)
)
BINDINGS = _passes(BINDINGS_ROOMS)
