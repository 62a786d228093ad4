"""All dispatches of models become loop nests: of two here, of the whole zoo in the slow test."""

from __future__ import annotations

import pytest

from fewbit.cost.loops.programs import list_module
from fewbit.frontends import import_model
from fewbit.models.registry import create, find_entry, zoo
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from fewbit.targets.iree.pipeline import to_iree
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.iree.build import build
from fewbit.tune.iree.loops import list_program

FEW_WORDS = 200


def imported(name: str) -> Program:
    return import_model(create(name), find_entry(name).example_inputs(1))


def check_dispatches(program: Program, name: str) -> None:
    source, _ = to_iree(program)
    plain = [f for f in compile_flags("iree-cpu") if "tiling" not in f and "ukernels" not in f]
    dispatches = build(source, plain, name).dispatches
    assert dispatches
    for dispatch in dispatches:
        listing = list_module(dispatch.module)
        for other in listing.unmodelled:
            assert other.op.startswith(("iree_linalg_ext.", "linalg.softmax")), other
            assert 0 < len(other.reason) < FEW_WORDS
        if dispatch.reason is None:
            assert dispatch.signature


def test_widths_of_a_quantized_program() -> None:
    program = quantize(imported("mlp"), "w4a8")
    listing = list_program(program)
    products = [nest for nest in listing.nests if nest.multiplies]
    assert len(products) == 4
    for nest in products:
        assert [access.bits for access in nest.accesses] == [8, 4, 32]
        assert nest.layer
    assert not listing.unmodelled


@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_dispatches_of_a_model(name: str) -> None:
    check_dispatches(imported(name), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo()))
def test_dispatches_of_the_zoo(name: str) -> None:
    check_dispatches(imported(name), name)
