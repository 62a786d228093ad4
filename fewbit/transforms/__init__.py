"""Passes, one per file, by name.

The name of a pass is the name of its file and of its class: `fold-constants` is `FoldConstants` in
`fold_constants.py`. Each value of `PASSES` imports its pass when asked, so listing the passes
loads none of them. `canonicalize`, `cse` and `dce` are xDSL's own and are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.passes import ModulePass

NAMES = (
    "constants-to-arith",
    "drop-empty-tensors",
    "expand-math",
    "fold-constants",
    "fuse-epilogue",
    "fuse-quantize",
    "fuse-requantize",
    "hoist-quantize",
    "im2col",
    "inline",
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


def _loader(name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = import_module(f"{__name__}.{name.replace('-', '_')}")
        return getattr(module, "".join(word.capitalize() for word in name.split("-")))

    return load


PASSES: dict[str, Callable[[], type[ModulePass]]] = {name: _loader(name) for name in NAMES}
