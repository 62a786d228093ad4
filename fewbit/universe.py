"""fewbit's entry in the `xdsl.universe`: its dialects and passes, loaded when first used.

Every tool that reads the universe sees them: `fewbit-opt`, `xdsl-opt`, and any plug-in's tool.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe

from fewbit.pipeline.loaders import loaders
from fewbit.transforms import NAMES

ROOMS = {
    "fewbit.transforms": NAMES,
    "fewbit.targets.cpu": (
        "assert-sizes",
        "bind-memory",
        "bound-lookups",
        "call-contractions",
        "call-kernels",
        "carry-in-place",
        "drop-asserts",
        "fill-splats",
        "make-shape-function",
        "note-layer-depths",
        "refuse-foreign",
        "rename-entry",
    ),
    "fewbit.targets.cuda": ("call-layers", "join-products", "find-output-shapes"),
    "fewbit.targets.vexii": ("call-dots",),
    "fewbit.targets.gemmini": ("call-streams", "rejoin-devices"),
    "fewbit.targets.iree": ("bind-parameters", "dispatch-kernels"),
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
