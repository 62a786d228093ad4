"""Passes of ours and of plug-ins, by name, run within a stage; the stage is verified at its end."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from fewbit.errors import UsageError
from fewbit.ir.context import make_context, multiverse


def run_own_passes(module: ModuleOp, specs: Sequence[str]) -> None:
    known = multiverse().all_passes
    for spec in specs:
        try:
            passes = PassPipeline.parse_spec(known, spec)
        except ValueError as e:
            raise UsageError(str(e), hint="'fewbit-opt --list-passes' lists them") from e
        passes.apply(make_context(), module)
