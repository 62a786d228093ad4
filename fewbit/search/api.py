"""`fewbit.search`: a model, data and a budget in; a Pareto front of recipes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit.base.files import PathLike

if TYPE_CHECKING:
    from fewbit.frontends import Model, Shapes
    from fewbit.numerics.widths import WidthLike
    from fewbit.quant.scheme import SchemeLike
    from fewbit.search.budget import BudgetsLike
    from fewbit.search.objective import Measure
    from fewbit.search.result import Result


def search(
    model: Model,
    *,
    data: Any = None,
    budget: BudgetsLike = (),
    target: str = "cpu",
    objective: str | Measure | None = None,
    searcher: str = "auto",
    trials: int = 60,
    seed: int = 0,
    workers: int | str = 1,
    front: int = 8,
    qat: int = 0,
    train: int = 0,
    measured: bool = False,
    samples: int | None = None,
    weights: Sequence[WidthLike] | None = None,
    acts: Sequence[WidthLike] | None = None,
    rules: Sequence[str] = ("max", "mse"),
    groups: Sequence[int] = (),
    act_scales: Sequence[str] = ("dynamic",),
    schemes: Sequence[SchemeLike] = (),
    tie: str = "none",
    keep: Mapping[str, SchemeLike] | None = None,
    free_ends: bool = False,
    example_inputs: Sequence[Any] = (),
    input_shapes: Shapes | None = None,
    dynamic_shapes: Any = None,
    output: PathLike | None = None,
) -> Result:
    """Search for the best scheme of every layer within a budget; `result.best.recipe` is it.

    `data` is a `fewbit.data.Split`, `(inputs, labels)`, inputs alone, or a text as `--data` takes
    it; recipes are chosen by one part of it and tested on another. `budget` limits costs: a number
    is a part of what 8 bits everywhere take, `{"size": 0.25}`, and a text an amount, "20kB", or
    as much as a recipe takes, "w3a8". `objective` is accuracy, loss, kl, agreement, top5,
    perplexity, sqnr, or a function of outputs and labels; what the data allows if not given.

    `qat` is how many epochs candidates are trained after rounding, and `train` how many the model
    itself is, before. With `measured`, budgets of cycles or latency are those of compiled programs
    on the target or its simulator, and not of its model. `workers` is a number, or "ray://..." for
    a cluster. With `output`, a folder, the run can be stopped and goes on where it was, and
    recipes, table and plot are written there. See docs/search.md for everything else.
    """
    from fewbit.search.budget import read_budgets
    from fewbit.search.load import Asked
    from fewbit.search.plan import SpaceOptions
    from fewbit.search.run import Settings, open_search
    from fewbit.targets.compile import name_of

    space = SpaceOptions(
        weights=None if weights is None else tuple(weights),
        acts=None if acts is None else tuple(acts),
        rules=tuple(rules),
        groups=tuple(groups),
        act_scales=tuple(act_scales),
        schemes=tuple(schemes),
        tie=tie,
        keep=dict(keep or {}),
        free_ends=free_ends,
    )
    settings = Settings(
        name=str(model) if isinstance(model, str | Path) else name_of(model),
        target=target,
        budgets=tuple(read_budgets(budget)),
        objective=objective,
        searcher=searcher,
        trials=trials,
        front=front,
        seed=seed,
        workers=workers,
        qat=qat,
        measured=measured,
        space=space,
    )
    with TemporaryDirectory(prefix="fewbit-search-") as temporary:
        folder = Path(temporary if output is None else output)
        asked = Asked(
            model,
            data,
            example_inputs,
            input_shapes,
            dynamic_shapes,
            samples=samples,
            train=train,
            folder=folder,
        )
        with open_search(asked, settings, folder) as run:
            return run.run()
