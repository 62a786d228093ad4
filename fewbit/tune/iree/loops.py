"""The loop nests of a program of ours, as IREE is given them."""

from __future__ import annotations

from fewbit.cost.loops.dumps import generic_text, parse_generic
from fewbit.cost.loops.programs import Listing, list_module
from fewbit.program.program import Program


def list_program(program: Program, dynamic: int = 1) -> Listing:
    """Return the nests of a program, with the layers that they come from."""
    from fewbit.targets.iree.pipeline import to_iree

    source, _ = to_iree(program)
    return list_module(parse_generic(generic_text(source.text, locations=True)), dynamic)
