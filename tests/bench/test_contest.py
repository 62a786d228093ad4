"""Tools in processes of their own."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.bench.case import COMPILED, Case
from fewbit.bench.contest import Prepared, check_threads, contest, usable_cpus
from fewbit.errors import Error

TEXT = """
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = mico.relu(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %z : tensor<2x4xf32>
}
"""
X = np.array([[-1, 2, -3, 4], [5, -6, 7, -8]], np.float32)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("contest")
    fewbit.compile(fewbit.Program(fewbit.parse(TEXT)), "cpu", folder / COMPILED, name="net")
    case = Case(folder=folder, model=None, quantized=False)
    case.save(None, [X], [])
    return case


def test_times_and_outputs(case: Case) -> None:
    times, absent = contest(case, {"fewbit": Prepared("compiled")}, 1, 0.1)
    assert absent == {}
    assert 0 < times["fewbit"].least <= times["fewbit"].median < 0.01
    assert times["fewbit"].rounds >= 15
    assert np.array_equal(case.outputs("fewbit")[0], np.maximum(X, 0))


def test_one_that_fails_leaves_the_others(case: Case) -> None:
    tools = {"fewbit": Prepared("compiled"), "torch": Prepared("float32")}
    times, absent = contest(case, tools, 1, 0.05)
    assert set(times) == {"fewbit"}
    assert set(absent) == {"torch"}


def test_no_more_threads_than_processors() -> None:
    check_threads(len(usable_cpus()))
    with pytest.raises(Error, match="processors"):
        check_threads(len(usable_cpus()) + 1)
