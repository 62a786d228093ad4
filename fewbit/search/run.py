"""A search from a model to its result: prepare, look at the ends, search, test.

Everything that was evaluated is in the store of the run's folder, so a run that was stopped, in
whatever way, goes on when it is asked for again: the searcher asks for the same candidates, and
those that are known cost nothing. What is found so far is written as it comes.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic, perf_counter

from fewbit.base.progress import progress, say
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.search.budget import Budget, Limit, eight_bits
from fewbit.search.cluster import LOCAL, PREFIX, Cluster, join_cluster, read_workers
from fewbit.search.data import Examples, SearchData
from fewbit.search.evaluation import AsItIs, Evaluated, Evaluator, Measure
from fewbit.search.load import Asked, Loaded, load
from fewbit.search.measured_costs import Measured
from fewbit.search.meters import find_meter
from fewbit.search.objective import Measure as UserMeasure
from fewbit.search.plan import Plan, SpaceOptions, make_plan
from fewbit.search.problem import Problem
from fewbit.search.result import CostRange, Point, Result, TestScore
from fewbit.search.searchers import DEFAULT, check_searcher, make_searcher
from fewbit.search.space import Candidate
from fewbit.search.store import Store
from fewbit.search.subject import FLOAT
from fewbit.targets.registry import DEFAULT_TARGET, find_target

SAVE_SECONDS = 2.0
"""How often what is found so far is written."""
SENSED = 256
"""Examples that sensitivities are measured on, where they are a search's first step."""
TRIALS = 60
FRONT = 8
MODEL = "model"
"""The folder of a float program whose weights were trained in the run."""
CHANCE = 1.5
"""A float model with so many times the accuracy of guessing, or less, is hardly trained."""


@dataclass(frozen=True)
class Settings:
    """What is asked of a search."""

    name: str
    """What the model is called."""
    target: str = DEFAULT_TARGET
    budgets: tuple[Budget, ...] = ()
    objective: str | UserMeasure | None = None
    searcher: str = DEFAULT
    trials: int = TRIALS
    front: int = FRONT
    seed: int = 0
    workers: int | str = 1
    """How many candidates are run at a time, or the address of a Ray cluster that runs them."""
    qat: int = 0
    """Epochs of training after rounding; 0 for none."""
    measured: bool = False
    """Whether cycles and latency are measured on the target, and not modelled."""
    space: SpaceOptions = field(default_factory=SpaceOptions)

    def check(self) -> None:
        """Refuse what is wrong before any work."""
        check_searcher(self.searcher)
        find_target(self.target)
        workers = read_workers(self.workers)
        if self.trials < 1 or (isinstance(workers, int) and workers < 1):
            raise UsageError("a search has at least one trial and one worker")
        if self.qat and isinstance(workers, int) and workers > 1:
            raise UsageError(
                "training in several threads would not be reproducible",
                hint="start the same command twice, since processes share a folder, or give "
                f"--workers {PREFIX}{LOCAL}",
            )


class Search:
    """One run: it begins with what can be reached, and `run` does the rest."""

    def __init__(
        self,
        loaded: Loaded,
        plan: Plan,
        settings: Settings,
        folder: Path,
        store: Store,
        measured: Measured | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.loaded, self.plan, self.settings, self.folder = loaded, plan, settings, folder
        self.store, self.measured, self.cluster = store, measured, cluster
        self.workers = int(settings.workers) if cluster is None else cluster.workers
        self.data: SearchData = loaded.data
        self.objective, self.space, self.limits = plan.objective, plan.space, plan.limits
        self.model_hash = loaded.subject.hash()
        self.measure: Measure = self._measure()
        self.evaluator = self._evaluator(self.measure, self.data.selection)
        probe = AsItIs(loaded.subject, self.objective)
        self.probe = self._evaluator(probe, self.data.selection) if settings.qat else self.evaluator
        self.sensed = self._evaluator(probe, self.data.selection[slice(0, SENSED)])
        self.evaluated: list[Evaluated] = []
        self.whole: dict[Candidate, dict[str, float]] = {}
        """Measured costs of whole candidates."""
        self.exceeding: set[Candidate] = set()
        """Candidates that exceed a limit when they are measured as a whole."""
        self.interrupted = False
        self.result = self._begin()

    def _measure(self) -> Measure:
        subject = self.loaded.subject
        if not self.settings.qat:
            return AsItIs(subject, self.objective)
        from fewbit.search.torch_subject import TorchSubject
        from fewbit.search.training import AfterTraining, labelled

        if not isinstance(subject, TorchSubject):
            raise UsageError("only PyTorch modules can be trained", hint="leave --qat out")
        part = labelled(self.data)
        return AfterTraining(subject, self.objective, part, self.settings.qat, self.settings.seed)

    def _evaluator(self, measure: Measure, part: Examples) -> Evaluator:
        if self.cluster is not None:
            measure = self.cluster.spread(measure, self.loaded.subject.parts())
        return Evaluator(
            self.space, self.model_hash, self.store, measure, part, self.objective, self.workers
        )

    def _begin(self) -> Result:
        """Return a result without trials: the ends of what can be reached."""
        reference = dict(self.probe.row(FLOAT)[0].metrics)
        widest = self.probe.one(self.space.widest)
        ranges = [self._range(limit) for limit in self.limits]
        settings = self.settings
        return Result(
            model=settings.name,
            model_hash=self.model_hash,
            data=self.data.name,
            examples=len(self.data.selection),
            target=settings.target,
            objective=self.objective.name,
            searcher=settings.searcher,
            seed=settings.seed,
            trials=settings.trials,
            qat=settings.qat,
            reference=reference,
            widest=self._point(widest),
            ranges=ranges,
        )

    def _range(self, limit: Limit) -> CostRange:
        table = limit.table
        cheapest = self.probe.one(table.cheapest())
        return CostRange(
            name=table.name,
            unit=table.unit,
            baseline=limit.baseline,
            least=table.least,
            most=table.of(self.space.widest),
            limit=limit.limit,
            cheapest=dict(cheapest.metrics),
        )

    def _point(self, each: Evaluated) -> Point:
        schemes = self.space.schemes(each.candidate)
        return Point(
            schemes={name: str(scheme) for name, scheme in schemes.items()},
            metrics=dict(each.metrics),
            costs={limit.name: limit.table.of(each.candidate) for limit in self.limits},
            fits=each.candidate not in self.exceeding
            and all(limit.is_met(each.candidate) for limit in self.limits),
            scales=dict(self.loaded.subject.static_scales(schemes)),
            measured=self.whole.get(each.candidate, {}),
        )

    @property
    def classes(self) -> int:
        """How many labels there are; 0 where there are none."""
        labels = self.data.selection.labels
        return 0 if labels is None else int(labels.max()) + 1

    def problem(self) -> Problem:
        return Problem(
            self.space,
            self.limits,
            self.objective,
            self.evaluator,
            self.sensed,
            self.result.widest.metrics,
            self.loaded.subject,
            self.settings.trials,
            self.settings.front,
            self.exceeding,
        )

    def run(self) -> Result:
        """Evaluate trials until there are enough; Ctrl-C ends them, and what is found is kept."""
        start = perf_counter()
        try:
            self._try_all(start)
            self._confirm()
        except KeyboardInterrupt:
            self.interrupted = True
            say("interrupted: this is what was found so far")
        self._note(start)
        if not self.interrupted:
            self._test()
        self.result = self.result.model_copy(update={"seconds": perf_counter() - start})
        self.result.write(self.folder)
        if (program := self.trained_program) is not None:
            program.save(self.folder / MODEL)
        return self.result

    def _try_all(self, start: float) -> None:
        problem = self.problem()
        searcher = make_searcher(self.settings.searcher, problem, self.settings.seed)
        trials = self.settings.trials
        saved = monotonic()
        with progress(f"Searching {self.settings.name}", trials) as step:
            while len(self.evaluated) < trials:
                wanted = min(self.workers, trials - len(self.evaluated))
                asked = searcher.ask(wanted)
                if not asked:
                    break
                for each in self._evaluate(asked):
                    self.evaluated.append(each)
                    step(note=self._best_text(problem))
                searcher.tell(self.evaluated[-len(asked) :])
                if monotonic() - saved > SAVE_SECONDS:
                    self._note(start)
                    self.result.save(self.folder)
                    saved = monotonic()

    def _evaluate(self, asked: list[tuple[int, ...]]) -> list[Evaluated]:
        return self.evaluator.evaluate(asked)

    def _best_text(self, problem: Problem) -> str:
        best = problem.best(self.evaluated)
        if best is None:
            return "nothing within the budget yet"
        limit = self.limits[0]
        cost = limit.show(limit.table.of(best.candidate))
        return f"best {self.objective.show(best.metrics)} at {limit.name} {cost}"

    def _note(self, start: float) -> None:
        """Take what was evaluated into the result."""
        best = self.problem().best(self.evaluated)
        points = [self._point(each) for each in self.evaluated]
        used = {id(each): each for each in (self.evaluator, self.probe, self.sensed)}
        samples = sum(each.samples for each in used.values())
        self.result = self.result.model_copy(
            update={
                "points": points,
                "chosen": None if best is None else self.evaluated.index(best),
                "done": len(points),
                "samples": samples,
                "seconds": perf_counter() - start,
            }
        )

    def _confirm(self) -> None:
        """Measure the best candidate as a whole; where it exceeds a limit, the next best."""
        if self.measured is None or not self.measured.prefixes:
            return
        limits = {limit.name: limit for limit in self.limits}
        wide = eight_bits(self.space)
        while (best := self.problem().best(self.evaluated)) is not None:
            parts = self.measured.compare(self.space.schemes(best.candidate), wide)
            whole = {name: part * limits[name].baseline for name, part in parts.items()}
            self.whole[best.candidate] = whole
            if all(limits[name].allows(value) for name, value in whole.items()):
                return
            self.exceeding.add(best.candidate)

    def _test(self) -> None:
        """Run the best candidate and the float model on the test part, once."""
        best, part = self.result.best, self.data.test
        if best is None or part is None:
            return
        chosen = self.evaluated[self.result.chosen or 0]
        tester = self._evaluator(self.measure, part)
        score = TestScore(
            examples=len(part),
            best=dict(tester.one(chosen.candidate).metrics),
            reference=dict(tester.row(FLOAT)[0].metrics),
        )
        self.result = self.result.model_copy(update={"test": score})

    @cached_property
    def trained_program(self) -> Program | None:
        """Return the float program whose weights were trained here; None where none were.

        After training of candidates it is that of the best one, else the model's own.
        """
        from fewbit.search.training import AfterTraining

        if isinstance(self.measure, AfterTraining) and self.result.best is not None:
            chosen = self.evaluated[self.result.chosen or 0]
            module = self.measure.converted(self.space.schemes(chosen.candidate))
            assert self.loaded.remake is not None
            return self.loaded.remake(module)
        return self.loaded.program if self.loaded.is_trained else None

    def best_program(self) -> Program:
        """Return the best candidate as a quantized program."""
        from fewbit.search.program_subject import quantize_program

        assert self.result.best is not None
        chosen = self.evaluated[self.result.chosen or 0]
        program = self.trained_program or self.loaded.program
        schemes = self.space.schemes(chosen.candidate)
        made = quantize_program(program, schemes, self.result.best.scales)
        made.recipe = str(self.result.best.recipe)
        return made


@contextmanager
def open_search(asked: Asked, settings: Settings, folder: Path) -> Generator[Search]:
    """Yield a search of a model that is loaded, and perhaps trained; its store is closed behind it.

    What cannot be met is refused before anything is trained or run.
    """
    settings.check()
    loaded = load(asked)
    with closing(Store(folder)) as store:
        measured = _find_measured(loaded, settings, store)
        options, budgets = settings.space, settings.budgets
        plan = make_plan(loaded, options, settings.target, budgets, settings.objective, measured)
        ready = loaded.train()
        schemes = plan.space.all_schemes
        static = {each.act for each in schemes if each.static and each.act is not None}
        if static:
            ready.subject.use_static_scales(ready.data.for_scales, sorted(static))
        workers = read_workers(settings.workers)
        with nullcontext() if isinstance(workers, int) else join_cluster(workers) as cluster:
            yield Search(ready, plan, settings, folder, store, measured, cluster)


def _find_measured(loaded: Loaded, settings: Settings, store: Store) -> Measured | None:
    """Return what measures the budgets of cycles or latency, if that is asked for."""
    if not settings.measured:
        return None
    kinds = {each.cost.partition(":")[0] for each in settings.budgets} & {"cycles", "latency"}
    if len(kinds) != 1:
        raise UsageError(
            "there is no budget that could be measured" if not kinds else "two kinds of budgets",
            hint="--measured is for a budget of cycles or of latency: --budget latency=0.8x",
        )
    meter = find_meter(kinds.pop(), settings.target, loaded.inputs)
    program = loaded.program
    return Measured(program, loaded.subject.hash(), loaded.layers, meter, store)


def warn_untrained(result: Result, classes: int) -> str | None:
    """Return a note where the float model is hardly better than guessing one of some classes."""
    accuracy = result.reference.get("accuracy")
    if accuracy is None or not classes or accuracy > CHANCE / classes:
        return None
    return (
        f"note: the float model finds {accuracy:.1%} of the labels, as guessing would; "
        "is it trained? --train 10 trains it on the data first"
    )
