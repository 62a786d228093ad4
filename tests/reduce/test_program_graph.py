"""Every cut of a program is a smaller program that verifies and runs."""

from __future__ import annotations

import fewbit
from fewbit.ir.walk import nested_ops
from fewbit.program.program import Program
from fewbit.reduce.check import random_inputs
from fewbit.reduce.program_graph import cuts_of, flat, size_of
from fewbit.reduce.search import search


def names_of(program: Program) -> list[str]:
    return [op.name for op in nested_ops(program.module)]


def test_cuts_of_a_network_run() -> None:
    program = flat(fewbit.import_model("zoo:lenet"))
    cuts = list(cuts_of(program))
    assert len(cuts) > 5
    for cut in cuts:
        assert size_of(cut) < size_of(program)
        cut.verify()
        assert cut.run(*random_inputs(cut, 0))


def test_one_layer_is_left_of_a_fault_in_one() -> None:
    program = flat(fewbit.quantize(fewbit.import_model("zoo:lenet"), "w4a8"))
    kind = "mico.bitconv2d"
    assert kind in names_of(program)
    smallest = search(program, cuts_of, lambda part: kind in names_of(part))
    smallest.verify()
    assert names_of(smallest).count(kind) == 1
    assert size_of(smallest) <= 2
    assert smallest.run(*random_inputs(smallest, 0))
