"""Properties that ops declare are true: random ops that have one are run, and looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block

from fewbit.dialects import kernel
from fewbit.dialects.traits import (
    Elementwise,
    KeepsSign,
    MovesData,
    NeverNegative,
    PicksElements,
    Property,
    TreatsFeaturesAlike,
)
from fewbit.interpreter import interpret
from tests.dialects.programs import OPS, functions, with_property
from tests.dialects.test_kernel import OPS as KERNELS
from tests.passes.lowering import RANDOM, Array, inputs_for

ALL = {**OPS, **KERNELS}
Check = Callable[[func.FuncOp, list[Array], np.random.Generator], None]


def run(function: func.FuncOp, inputs: list[Array]) -> Array:
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    return interpret(module, *inputs)[0]


def elementwise(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    """Check that each element of the result depends on those at its place alone."""
    whole = run(function, inputs)
    place = [int(i) for i in np.unravel_index(rng.integers(whole.size), whole.shape)]
    others = [np.array(x).ravel()[::-1].reshape(x.shape) for x in inputs]
    for x, other in zip(inputs, others, strict=True):
        behind = place[len(place) - x.ndim :]
        at = tuple(i if size > 1 else 0 for i, size in zip(behind, x.shape, strict=True))
        other[at] = x[at]
    here = tuple(place)
    np.testing.assert_array_equal(run(function, others)[here], whole[here])


def moves_data(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    given = np.concatenate([x.ravel() for x in inputs])
    np.testing.assert_array_equal(np.sort(run(function, inputs).ravel()), np.sort(given))


def picks_elements(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    assert set(run(function, inputs).ravel()) <= {v for x in inputs for v in x.ravel()}


def keeps_sign(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    assert run(function, [np.maximum(x, 0) for x in inputs]).min(initial=0) >= 0


def never_negative(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    assert run(function, inputs).min(initial=0) >= 0


def treats_alike(function: func.FuncOp, inputs: list[Array], rng: np.random.Generator) -> None:
    op = function.body.block.first_op
    assert op is not None
    argument = next(i for i, a in enumerate(function.args) if a is op.operands[0])
    features = inputs[argument]
    order = rng.permutation(features.shape[-1])
    moved = [x[..., order] if i == argument else x for i, x in enumerate(inputs)]
    whole, permuted = run(function, inputs), run(function, moved)
    if whole.dtype.kind == "f":
        # A mean of the same numbers in another order may be rounded otherwise.
        np.testing.assert_allclose(permuted, whole[..., order], rtol=1e-5)
    else:
        assert np.abs(permuted.astype(int) - whole[..., order].astype(int)).max(initial=0) <= 1


CHECKS: dict[type[Property], Check] = {
    Elementwise: elementwise,
    MovesData: moves_data,
    PicksElements: picks_elements,
    KeepsSign: keeps_sign,
    NeverNegative: never_negative,
    TreatsFeaturesAlike: treats_alike,
}


@pytest.mark.parametrize(
    ("kind", "has"), [(kind, has) for has in CHECKS for kind in with_property(has)]
)
@RANDOM
@given(data=st.data())
def test_properties_are_true(kind: str, has: type[Property], data: st.DataObject) -> None:
    function = data.draw(functions("main", ALL[kind]))
    op = function.body.block.first_op
    assert op is not None
    assume(has.holds(op))
    ModuleOp([function])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    CHECKS[has](function, inputs_for(function, rng), rng)


def test_conditions_are_asked() -> None:
    x = Block(arg_types=[TensorType(f32, [1, 4, 4, 2])]).args[0]
    largest = kernel.Pool2dOp.of(x, kind="max", kernel_size=[2, 2])
    mean = kernel.Pool2dOp.of(x, kind="average", kernel_size=[2, 2])
    assert PicksElements.holds(largest)
    assert not PicksElements.holds(mean)
    assert KeepsSign.holds(mean)
    assert not MovesData.holds(largest)
    assert not MovesData.holds(Block())


def test_a_softmax_is_not_elementwise() -> None:
    assert "mico.softmax" not in with_property(Elementwise)
    assert {"mico.add", "mico.gelu", "mico.relu"} <= set(with_property(Elementwise))
