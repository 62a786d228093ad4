"""The analytic model: what must be faster is, and no op takes a second to be ranked."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from fewbit.cost.hardware import find_hardware
from fewbit.tune.analytic import Analytic
from fewbit.tune.model import best
from fewbit.tune.schedule import Schedule
from fewbit.tune.space import schedules
from tests.cost.loops.nests import convolution, matmul

CPU = find_hardware("h200").model_copy(
    update={"kind": "cpu", "vector_bits": 512, "registers": 32, "multipliers": 2.0, "loads": 2.0}
)
MODEL = Analytic(CPU)


def seconds(vector: tuple[int, int, int], size: int = 256) -> float:
    return MODEL.seconds(matmul(size, size, size), Schedule((64, 64, 0), vector))


def test_larger_register_tiles_until_they_do_not_fit() -> None:
    assert seconds((4, 64, 1)) < seconds((4, 16, 1)) < seconds((1, 16, 1))
    assert seconds((4, 64, 1)) < seconds((16, 64, 1))


def test_edges_cost_what_they_are() -> None:
    nest = matmul(17, 64, 64)
    whole, ragged = (MODEL.seconds(nest, Schedule((17, 64, 0), (m, 64, 1))) for m in (17, 4))
    even = MODEL.seconds(matmul(16, 64, 64), Schedule((16, 64, 0), (4, 64, 1)))
    assert even < ragged < 1.5 * even
    assert whole > ragged  # 68 sums do not fit


def test_vectors_that_llvm_takes_apart() -> None:
    assert seconds((4, 48, 1), 192) > 2 * seconds((4, 32, 1), 192)


def test_a_convolution_with_a_rest_is_scalars() -> None:
    nest = convolution(64, 24, 1, 1)
    half, rest = (MODEL.seconds(nest, Schedule((64, 24, 0), (8, n, 1))) for n in (8, 16))
    assert rest > 2 * half


def test_weights_that_lie_across_are_turned_in_squares() -> None:
    nest = matmul(16, 64, 64)
    x, w, y = nest.accesses
    assert w.indices is not None
    across = replace(w, shape=w.shape[::-1], indices=w.indices[::-1])
    turned = replace(nest, accesses=(x, across, y))
    steps = {n: MODEL.seconds(turned, Schedule((16, 64, 0), (8, 16, n))) for n in (1, 8, 16)}
    assert steps[16] < steps[8] < steps[1]
    assert MODEL.seconds(nest, Schedule((16, 64, 0), (8, 16, 8))) < steps[8]


def test_ops_without_products_stream() -> None:
    nest = convolution(64, 16, 1, 1)
    still = nest.__class__("relu", nest.loops[:2], (), ("arith.maximumf",))
    with pytest.raises(ValueError, match="empty"):
        MODEL.streaming(still)
    relu = nest.__class__("relu", nest.loops, nest.accesses, ("arith.maximumf",))
    assert MODEL.seconds(relu, Schedule((), ())) > 0


def test_ranking_takes_less_than_a_second() -> None:
    nest = matmul(512, 512, 512)
    start = process_time()
    found = best(MODEL, nest, schedules(nest, CPU), 5)
    assert process_time() - start < 1.0
    assert len(found) == 5
