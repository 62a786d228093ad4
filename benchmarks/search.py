"""Searchers side by side: the same budgets, the same space, the same examples to choose by.

    python benchmarks/search.py --models lenet,resnet8 --seeds 5
    python benchmarks/search.py --data fashion-mnist --epochs 2

The zoo's models are trained first, on 5,000 digits if nothing else is said. For each budget, `auto`
has 20 trials and the others 120; what counts is how many examples were run, sensitivities among
them, and the accuracy on images that nothing was chosen by. Evaluations are kept in `--output`, so
a run goes on where it was stopped, and searchers that try the same candidate share its row; each
still counts it as its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

import fewbit
from fewbit.base.progress import QUIET, set_verbosity
from fewbit.search.api import search
from fewbit.search.load import Asked, load
from fewbit.search.objective import OBJECTIVES
from fewbit.search.result import Result

BUDGETS = {"lenet": ("w2a8",), "resnet8": ("w2a8", "w3a8")}
EPOCHS = {"lenet": 20, "resnet8": 8}
TRIALS = {"auto": 20, "kl-lp": 1, "gradient-lp": 1}
MOST_TRIALS = 120
UNIFORM = ("w8a8", "w4a8", "w4a8-mse", "w3a8", "w3a8-mse", "w2a8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="lenet,resnet8")
    parser.add_argument("--searchers", default="auto,mico,evolution,random,tpe,kl-lp,gradient-lp")
    parser.add_argument("--budgets", help="Recipes whose sizes are the budgets; usual ones if not.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", default="mnist", help="mnist or fashion-mnist.")
    parser.add_argument("--epochs", type=int, help="Of training before; usual ones if not given.")
    parser.add_argument("--trials", type=int, default=MOST_TRIALS)
    parser.add_argument("--output", type=Path, default=Path("build/search"))
    parser.add_argument("--qat", type=int, default=0, help="Epochs of training of candidates.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    set_verbosity(QUIET)
    print(f"fewbit {fewbit.__version__}, torch {torch.__version__}")
    for model in given.models.split(","):
        show_uniform(model, given)
        for budget in given.budgets.split(",") if given.budgets else BUDGETS[model]:
            print(f"\n{model}, at most the size of {budget}; accuracy in %")
            print("searcher     trials  examples  choose by (mean, least)   test (mean ± s)")
            for searcher in given.searchers.split(","):
                runs = [run(model, budget, searcher, seed, given) for seed in range(given.seeds)]
                show(searcher, [each for each in runs if each is not None])


def run(model: str, budget: str, searcher: str, seed: int, given: Any) -> Result | None:
    trials = min(TRIALS.get(searcher, given.trials), given.trials)
    return search(
        f"zoo:{model}",
        data=given.data,
        budget={"size": budget},
        searcher=searcher,
        trials=trials,
        seed=seed,
        train=given.epochs or EPOCHS[model],
        front=0,
        free_ends=True,
        qat=given.qat,
        output=given.output / model,
    )


def show(searcher: str, runs: list[Result]) -> None:
    chosen = [100 * each.best.metrics["accuracy"] for each in runs if each.best is not None]
    tests = [100 * each.test.best["accuracy"] for each in runs if each.test is not None]
    examples = round(mean(each.samples for each in runs))
    spread = stdev(tests) if len(tests) > 1 else 0.0
    print(
        f"{searcher:12} {runs[0].done:6} {examples:9,}  {mean(chosen):9.2f} {min(chosen):8.2f} "
        f"{mean(tests):12.2f} ± {spread:.2f}",
        flush=True,
    )


def show_uniform(model: str, given: Any) -> None:
    """Print what the same width everywhere gives, on both parts."""
    epochs = given.epochs or EPOCHS[model]
    asked = Asked(f"zoo:{model}", given.data, train=epochs, folder=given.output / model)
    loaded = load(asked).train()
    assert loaded.data.test is not None
    parts = (loaded.data.selection, loaded.data.test)
    print(f"\n{model}: uniform recipes, accuracy to choose by and on test")
    for text in ("float", *UNIFORM):
        recipe = fewbit.Recipe.of("fp" if text == "float" else text)
        schemes = {} if text == "float" else recipe.resolve(list(loaded.layers))
        objective = OBJECTIVES["accuracy"]
        results = [loaded.subject.measure(schemes, part, objective)["accuracy"] for part in parts]
        print(f"{text:10} {results[0]:8.2%} {results[1]:8.2%}", flush=True)


if __name__ == "__main__":
    main()
