"""`fewbit.search` from end to end: what it finds, keeps, shows, and goes on with."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.errors import Error, UsageError
from fewbit.quant.recipe import Recipe
from fewbit.search.result import BEST, Result
from fewbit.search.store import FILE
from fewbit.targets.compile import compile
from tests.search.models import images, small

FEW: dict[str, Any] = {"weights": (1, 2, 4, 8), "rules": ("max",), "free_ends": True}


def search(**options: Any) -> Result:
    given: dict[str, Any] = {"data": images(), "budget": {"size": 0.5}, "trials": 12, **FEW}
    return fewbit.search(small(), **(given | options))


def test_a_search_finds_a_recipe_within_the_budget(tmp_path: Path) -> None:
    result = search(output=tmp_path)
    best = result.best
    assert best is not None
    assert best.costs["size"] <= 0.5 * result.ranges[0].baseline
    assert best.metrics["accuracy"] >= 0.9 * result.reference["accuracy"]
    assert result.done == 12
    assert result.test is not None
    assert result.test.examples == len(images().test_x)
    assert all(
        a.costs["size"] < b.costs["size"]
        for a, b in zip(result.front, result.front[1:], strict=False)
    )
    assert "best: accuracy" in str(result)
    assert "test: accuracy" in str(result)
    assert "<svg" in result._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_the_folder_has_recipes_that_compile_takes(tmp_path: Path) -> None:
    result = search(output=tmp_path)
    assert result.best is not None
    assert Recipe.of(tmp_path / BEST) == result.best.recipe
    example = torch.as_tensor(images().test_x[:1])
    artifact = compile(small(), recipe=tmp_path / BEST, example_inputs=(example,))
    assert artifact(images().test_x[:1]).shape == (1, 5)
    points = sorted((tmp_path / "front").glob("*.toml"))
    assert [Recipe.of(path) for path in points] == [each.recipe for each in result.front]
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 1 + result.done
    ElementTree.parse(tmp_path / "front.svg")


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    result = search(output=tmp_path)
    again = Result.load(tmp_path)
    assert again == result
    assert str(again) == str(result)


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    one, two = (search(output=tmp_path / name, workers=n) for name, n in (("a", 1), ("b", 1)))
    assert [p.schemes for p in one.points] == [p.schemes for p in two.points]
    assert [p.metrics for p in one.points] == [p.metrics for p in two.points]


def test_workers_evaluate_what_one_would(tmp_path: Path) -> None:
    one, two = (search(output=tmp_path / str(n), workers=n, searcher="random") for n in (1, 2))
    assert [p.schemes for p in one.points] == [p.schemes for p in two.points]
    assert [p.metrics for p in one.points] == [p.metrics for p in two.points]


def rows(folder: Path) -> dict[str, str]:
    with sqlite3.connect(folder / FILE) as file:
        return dict(file.execute("select key, date || seconds from evaluations"))


def test_nothing_is_evaluated_twice(tmp_path: Path) -> None:
    search(output=tmp_path, trials=6)
    before = rows(tmp_path)
    result = search(output=tmp_path, trials=10)
    after = rows(tmp_path)
    assert result.done == 10
    assert before.items() <= after.items()
    again = search(output=tmp_path, trials=10)
    assert rows(tmp_path) == after
    assert again.points == result.points


CHILD = """
import sys
import torch
torch.set_num_threads(1)
import fewbit
from tests.search.models import images, small
fewbit.search(
    small(), data=images(), budget={"size": 0.5}, trials=int(sys.argv[2]), output=sys.argv[1],
    weights=(1, 2, 4, 8), rules=("max",), free_ends=True, searcher=sys.argv[3],
)
"""


def start(folder: Path, trials: int, searcher: str = "random") -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", CHILD, str(folder), str(trials), searcher]
    return subprocess.Popen(command, env=environment)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def count(folder: Path) -> int:
    """Return how many rows there are, also where the file is just being made."""
    try:
        return len(rows(folder)) if (folder / FILE).is_file() else 0
    except sqlite3.OperationalError:
        return 0


def test_a_search_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    child = start(tmp_path, 90)
    wait_for(lambda: count(tmp_path) > 20)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    left = rows(tmp_path)
    assert 20 < len(left) < 90
    result = search(output=tmp_path, trials=90, searcher="random")
    whole = search(output=tmp_path / "whole", trials=90, searcher="random")
    assert left.items() <= rows(tmp_path).items()
    assert rows(tmp_path).keys() == rows(tmp_path / "whole").keys()
    assert result.points == whole.points


@pytest.mark.slow
def test_processes_share_a_run(tmp_path: Path) -> None:
    both = [start(tmp_path, 60, "auto") for _ in range(2)]
    assert [child.wait() for child in both] == [0, 0]
    alone = search(output=tmp_path / "alone", trials=60)
    assert Result.load(tmp_path).points == alone.points
    assert rows(tmp_path).keys() == rows(tmp_path / "alone").keys()


def test_an_interrupt_ends_with_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewbit.search.evaluation import Evaluator

    evaluate, calls = Evaluator.evaluate, list[int]()

    def interrupted(self: Evaluator, candidates: Any) -> Any:
        calls.append(1)
        if len(calls) > 25:
            raise KeyboardInterrupt
        return evaluate(self, candidates)

    monkeypatch.setattr(Evaluator, "evaluate", interrupted)
    result = search(output=tmp_path, trials=60)
    assert 0 < result.done < 60
    assert result.best is not None
    assert result.test is None
    assert (tmp_path / BEST).is_file()


@pytest.mark.parametrize("objective", ["loss", "kl", "agreement", "top5", "sqnr"])
def test_other_objectives(objective: str, tmp_path: Path) -> None:
    result = search(objective=objective, trials=4, output=tmp_path)
    assert result.objective == objective
    assert result.best is not None


def test_a_function_of_the_users_is_an_objective() -> None:
    def margin(outputs: np.ndarray[Any, Any], labels: np.ndarray[Any, Any] | None) -> float:
        assert labels is not None
        return float(outputs[np.arange(len(labels)), labels].mean())

    result = search(objective=margin, trials=4)
    assert result.best is not None
    assert result.best.metrics["margin"] == max(
        p.metrics["margin"] for p in result.points if p.fits
    )

    def nothing(outputs: Any, labels: Any) -> Any:
        return None

    with pytest.raises(UsageError, match="which is no number"):
        search(objective=nothing, trials=4)


def test_without_data_the_noise_of_outputs_decides() -> None:
    example = torch.zeros(1, 1, 16, 16)
    result = search(data=None, example_inputs=(example,), trials=5)
    assert result.objective == "sqnr"
    assert result.test is None
    assert result.best is not None


def test_a_pair_of_arrays_is_split_into_parts() -> None:
    result = search(data=(images().train_x, images().train_y), trials=3)
    assert (result.examples, result.test and result.test.examples) == (96, 96)


@pytest.mark.slow
def test_a_program_is_searched_by_compiling_it(tmp_path: Path) -> None:
    example = torch.as_tensor(images().train_x[:40])
    program = fewbit.import_model(small(), (example,))
    given = {"data": images(), "budget": {"size": 0.5}, "samples": 40, "seed": 3}
    options: dict[str, Any] = {**given, **FEW}
    result = fewbit.search(program, trials=2, searcher="random", **options)
    module = fewbit.search(small(), trials=2, searcher="random", **options)
    assert [p.schemes for p in result.points] == [p.schemes for p in module.points]
    for one, other in zip(result.points, module.points, strict=True):
        assert one.metrics["loss"] == pytest.approx(other.metrics["loss"], rel=0.02)


def test_candidates_are_trained_before_they_are_measured(tmp_path: Path) -> None:
    tight: dict[str, Any] = {"budget": {"size": 0.3}, "weights": (1, 8), "trials": 2}
    result = search(qat=1, output=tmp_path, **tight)
    plain = search(**tight)
    assert result.best is not None
    assert plain.best is not None
    assert result.best.metrics["loss"] < plain.best.metrics["loss"]
    program = fewbit.Program.load(tmp_path / "model")
    made = compile(program, recipe=tmp_path / BEST)
    outputs = np.concatenate([made(x[None]) for x in images().test_x])
    assert result.test is not None
    accuracy = float((outputs.argmax(-1) == images().test_y).mean())
    assert accuracy == pytest.approx(result.test.best["accuracy"], abs=0.02)


def test_the_gradient_scores_layers_in_one_pass() -> None:
    result = search(searcher="gradient-lp", trials=2)
    assert result.best is not None
    assert result.best.metrics["accuracy"] > 0.5 * result.reference["accuracy"]


def test_cycles_and_size_together() -> None:
    result = search(target="vexii", budget={"size": 0.6, "cycles": 0.95}, trials=6, acts=(4, 8))
    assert [each.name for each in result.ranges] == ["size", "cycles:high"]
    assert result.best is not None
    assert result.best.costs["cycles:high"] <= 0.95 * result.ranges[1].baseline


def test_a_budget_that_nothing_meets_is_answered_at_once() -> None:
    begin = time.perf_counter()
    with pytest.raises(Error, match=r"no recipe has size of .* \(0.01x\) or less: the least is"):
        search(budget={"size": 0.01}, train=100)
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"searcher": "atuo"}, "did you mean 'auto'"),
        ({"objective": "acuracy"}, "did you mean 'accuracy'"),
        ({"objective": "accuracy", "data": None}, "there is no data, so there is no accuracy"),
        ({"objective": "loss", "data": images().train_x}, "no labels in the data"),
        ({"budget": "size:0.25"}, "is no budget"),
        ({"target": "vexiii"}, "there is no target"),
        ({"target": "vexii", "weights": (3,)}, "no operands of 3 bits"),
        ({"target": "gemmini", "weights": None}, "there is nothing to choose"),
        ({"budget": {"cycles": 0.5}}, "no model of cycles on cpu"),
        ({"target": "vexii", "budget": {"latency": 0.5}}, "latency is modelled for cpu"),
        ({"target": "vexii", "budget": {"cycles:huge": 0.5}}, "models no 'huge'"),
        ({"rules": ("most",)}, "no rule 'most'"),
        ({"trials": 0}, "at least one trial"),
        ({"qat": 1, "workers": 2}, "not be reproducible"),
        ({"data": "mnits"}, "there is no data 'mnits'"),
        ({"data": images().train_x.astype(np.uint8)}, "takes floats, and data has uint8"),
        ({"data": (images().train_x, images().train_y[:5])}, "differ in how many"),
        ({"weights": (9,)}, "9"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, Any], message: str) -> None:
    example = torch.zeros(1, 1, 16, 16)
    with pytest.raises(Error, match=message):
        search(example_inputs=(example,), **options)


def test_a_model_without_layers_is_refused() -> None:
    class Plain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    with pytest.raises(UsageError, match="no layer whose weight could be quantized"):
        fewbit.search(Plain(), data=images())


def test_a_folder_without_a_search_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no search in this folder"):
        Result.load(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(UsageError, match="this is no result of a search"):
        Result.load(tmp_path)


def test_an_interrupt_before_any_trial_leaves_what_can_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewbit.search.evaluation import Evaluator

    def interrupted(self: Evaluator, candidates: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Evaluator, "evaluate", interrupted)
    result = search(output=tmp_path)
    assert result.best is None
    assert "nothing within the budget yet" in str(result)
    assert Result.load(tmp_path).ranges == result.ranges
    assert not (tmp_path / BEST).exists()


def test_a_package_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(Error, match=r"needs ortools(.|\n)*fewbit\[search\]"):
        search(trials=2)


def test_layers_that_cannot_be_rounded_stay_float() -> None:
    class Tied(nn.Module):
        """A weight that is computed from a parameter is a layer of the program alone."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(256, 16)
            self.middle = nn.Linear(16, 16)
            self.scale = nn.Parameter(torch.ones(5, 16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.middle(torch.relu(self.hidden(x.flatten(1)))))
            return nn.functional.linear(x, self.scale * 0.5)

    result = fewbit.search(Tied(), data=images(), budget={"size": 0.6}, trials=4, **FEW)
    assert result.best is not None
    assert {"hidden", "middle"} <= set(result.best.schemes)
    assert result.best.schemes["scale"] == "fp"
