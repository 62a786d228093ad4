"""The comparison of layers sees what is wrong, be it one integer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from tests.e2e.layerwise import Array, assert_layers_agree, with_layers_given, with_layers_shown


@pytest.fixture(scope="module")
def program() -> Program:
    return quantize(fold_batch_norm(fewbit.import_model("zoo:ds-cnn")), "w4a8")


def tampered(program: Program, change: Callable[[list[Array]], None]):
    """The interpreter, with something changed in what it gives of the program's layers."""
    inputs = made_up_inputs(program)

    def run(given: Program) -> list[Array]:
        results = [np.array(value) for value in given.run(*inputs)]
        if len(results) > 1:
            change(results)
        return results

    return inputs, run


def test_programs_verify_and_agree_with_themselves(program: Program) -> None:
    with_layers_shown(program).verify()
    with_layers_given(program).verify()
    assert_layers_agree(program, *tampered(program, lambda found: None))


def test_a_wrong_bit_of_a_layer_is_seen(program: Program) -> None:
    def change(found: list[Array]) -> None:
        found[2].flat[0] = np.nextafter(found[2].flat[0], np.float32(np.inf))

    with pytest.raises(AssertionError, match="result of a layer"):
        assert_layers_agree(program, *tampered(program, change))
    assert_layers_agree(program, *tampered(program, change), bound=1e-6)


def test_wrong_floats_between_layers_are_seen(program: Program) -> None:
    def change(found: list[Array]) -> None:
        found[3] *= np.float32(1.0001)

    with pytest.raises(AssertionError, match="input of a layer"):
        assert_layers_agree(program, *tampered(program, change))


def test_a_wrong_output_is_seen(program: Program) -> None:
    def change(found: list[Array]) -> None:
        found[0] *= np.float32(1.0001)

    with pytest.raises(AssertionError):
        assert_layers_agree(program, *tampered(program, change))
