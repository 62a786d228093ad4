"""fewbit's entry in the `xdsl.universe`: its dialects and passes, loaded when first used.

Every tool that reads the universe sees them: `fewbit-opt`, `xdsl-opt`, and any plug-in's tool.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe

from fewbit.transforms import PASSES


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
    all_dialects={"graph": _graph, "kernel": _kernel, "mico": _mico}, all_passes=PASSES
)
