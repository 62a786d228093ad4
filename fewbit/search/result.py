"""What a search found, as Python, as a file, and as it is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from fewbit.base.files import PathLike, replacing_file
from fewbit.base.folders import Record
from fewbit.errors import Place, UsageError
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme
from fewbit.search.costs import amount
from fewbit.search.front import pareto_front
from fewbit.search.objective import Objective, objective_named

if TYPE_CHECKING:
    from rich.table import Table

FILE = "run.json"
BEST = "best.toml"
SCALES = ".json"
"""Ends the name of what is beside a recipe that has static scales of activations."""
FRONT = "front"
TABLE = "table.csv"
PLOT = "front.svg"
LONGEST = 40
"""How long a recipe may be that a table shows as it is."""
MANY = 24
"""Layers that a table does not show one by one."""


class Point(Record):
    """A recipe, with its numbers and costs."""

    schemes: dict[str, str]
    """By layer."""
    metrics: dict[str, float]
    costs: dict[str, float]
    fits: bool = True
    """Whether it is within all budgets."""
    scales: dict[str, float] = Field(default_factory=dict[str, float])
    """Static scales of activations, by layer."""
    measured: dict[str, float] = Field(default_factory=dict[str, float])
    """Costs of the whole program, where it was compiled and measured."""

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe.with_exceptions(Recipe.of({"layers": self.schemes}).layers)

    def save(self, path: Path) -> None:
        """Write the recipe, and beside it the scales that it needs."""
        self.recipe.save(path)
        if self.scales:
            Calibration(self.scales).save(path.with_suffix(SCALES))


class CostRange(Record):
    """What can be reached of a cost, and what is allowed."""

    name: str
    unit: str
    baseline: float
    """With 8 bits everywhere."""
    least: float
    most: float
    limit: float | None = None
    cheapest: dict[str, float] = Field(default_factory=dict[str, float])
    """The numbers of the candidate that costs the least."""

    def part(self, value: float) -> str:
        return f"{value / self.baseline:.3g}x" if self.baseline else "-"

    def show(self, value: float) -> str:
        return f"{amount(value, self.unit)} ({self.part(value)})"


class TestScore(Record):
    """Numbers on the part of the data that nothing was chosen by."""

    examples: int
    best: dict[str, float]
    reference: dict[str, float]
    """Those of the float model."""


class Result(Record):
    """A search, as far as it went."""

    format: Literal["fewbit-search"] = "fewbit-search"
    version: Literal[1] = 1
    model: str
    model_hash: str
    data: str
    examples: int
    target: str
    objective: str
    searcher: str
    seed: int
    trials: int
    done: int = 0
    """Trials that were evaluated; fewer than `trials` where the search was interrupted."""
    qat: int = 0
    samples: int = 0
    """Examples that were run in all, those of sensitivities among them."""
    seconds: float = 0.0
    reference: dict[str, float]
    """Numbers of the float model."""
    widest: Point
    ranges: list[CostRange]
    points: list[Point] = Field(default_factory=list[Point])
    chosen: int | None = None
    """The best point, by its number."""
    test: TestScore | None = None

    @staticmethod
    def load(folder: PathLike) -> Result:
        """Read what a search left in a folder."""
        path = Path(folder) / FILE
        if not path.is_file():
            raise UsageError(
                "there is no search in this folder",
                place=Place(file=str(folder)),
                hint="give the folder that 'fewbit search -o' wrote",
            )
        try:
            return Result.model_validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"this is no result of a search: {what}: {first['msg']}",
                place=Place(file=str(path)),
                hint="it was changed, or written by another version: search again into it",
            ) from None

    @property
    def best(self) -> Point | None:
        """The best point within all budgets."""
        return None if self.chosen is None else self.points[self.chosen]

    @property
    def front(self) -> list[Point]:
        """Points that no other beats in objective and the first cost, from the cheapest on."""
        cost = self.ranges[0].name
        return pareto_front(
            self.points, lambda each: each.costs[cost], lambda each: self.value(each.metrics)
        )

    @property
    def kind(self) -> Objective:
        return objective_named(self.objective)

    def value(self, metrics: dict[str, float]) -> tuple[float, float]:
        return self.kind.value(metrics)

    def show(self, metrics: dict[str, float]) -> str:
        return self.kind.show(metrics)

    def save(self, folder: Path) -> None:
        """Write the file that the others are made from."""
        with replacing_file(folder / FILE) as file:
            file.write(self.to_text().encode())

    def write(self, folder: Path) -> None:
        """Write all files of a search that ended: recipes, table, plot."""
        from fewbit.search.plot import plot_front

        self.save(folder)
        (folder / FRONT).mkdir(parents=True, exist_ok=True)
        for old in [*(folder / FRONT).iterdir(), *folder.glob(f"{Path(BEST).stem}.*")]:
            old.unlink()
        for number, point in enumerate(self.front, start=1):
            point.save(folder / FRONT / f"{number:02}.toml")
        if self.best is not None:
            self.best.save(folder / BEST)
        for name, text in ((TABLE, self.csv()), (PLOT, plot_front(self))):
            with replacing_file(folder / name) as file:
                file.write(text.encode())

    def rows(self, points: list[Point] | None = None) -> list[dict[str, object]]:
        """Return points as plain rows: recipe, numbers, costs."""
        front = self.front
        return [
            {
                "recipe": str(point.recipe),
                **point.metrics,
                **point.costs,
                "fits": point.fits,
                "front": point in front,
                "best": point == self.best,
            }
            for point in (self.points if points is None else points)
        ]

    @property
    def table(self) -> list[dict[str, object]]:
        """All points as plain rows."""
        return self.rows()

    def csv(self) -> str:
        """Return all points as a table of comma-separated values."""
        from csv import DictWriter
        from io import StringIO

        rows, text = self.rows(), StringIO()
        columns = list(dict.fromkeys(key for row in rows for key in row))
        writer = DictWriter(text, columns or ["recipe"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def show_table(self) -> Table:
        """Return the front as a table for people."""
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        table.add_column("")
        recipes = "recipe" if self._describe is not _bits_of else "bits of layers"
        for name in (self.objective, *(each.name for each in self.ranges), recipes):
            justify = "left" if name == recipes else "right"
            table.add_column(name, justify=justify, overflow="fold")
        front, described = self.front, self._describe
        for number, point in enumerate(front, start=1):
            mark = "best" if point == self.best else f"{number:02}"
            table.add_row(mark, *self._cells(point), described(point))
        if self.best is not None and self.best not in front:
            table.add_row("best", *self._cells(self.best), described(self.best))
        table.add_section()
        table.add_row("8 bits", *self._cells(self.widest), described(self.widest))
        table.add_row("float", self.show(self.reference), *[""] * (len(self.ranges) + 1))
        return table

    @property
    def _describe(self) -> Callable[[Point], str]:
        """What a table says of a recipe: all of it, where all are short."""
        longest = max((len(str(point.recipe)) for point in self.front), default=0)
        return _bits_of if longest > LONGEST else lambda point: str(point.recipe)

    def _cells(self, point: Point) -> list[str]:
        costs = [each.show(point.costs[each.name]) for each in self.ranges]
        return [self.show(point.metrics), *costs]

    @property
    def title(self) -> str:
        trained = f", {self.qat} epochs of QAT" if self.qat else ""
        return (
            f"{self.model} on {self.data}, {self.target}: {self.done} of {self.trials} trials "
            f"by {self.searcher}{trained}"
        )

    def summary(self) -> str:
        """Return the best point in a line or two."""
        if self.best is None:
            return f"{self.title}; nothing within the budget yet"
        costs = ", ".join(f"{r.name} {r.show(self.best.costs[r.name])}" for r in self.ranges)
        lines = [f"best: {self.objective} {self.show(self.best.metrics)} at {costs}"]
        lines[0] += f" (float {self.show(self.reference)}, {self.examples} examples to choose by)"
        if self.best.measured:
            whole = (f"{r.name} {r.show(self.best.measured[r.name])}" for r in self._measured)
            lines.append(f"measured as a whole: {', '.join(whole)}")
        if self.test is not None:
            lines.append(
                f"test: {self.objective} {self.show(self.test.best)} "
                f"(float {self.show(self.test.reference)}, {self.test.examples} examples)"
            )
        return "\n".join(lines)

    @property
    def _measured(self) -> list[CostRange]:
        known = {} if self.best is None else self.best.measured
        return [each for each in self.ranges if each.name in known]

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Result({self.title}; {len(self.front)} points of the front)\n{self.summary()}"

    def _repr_html_(self) -> str:
        """The plot and the front, in a notebook."""
        from fewbit.search.plot import plot_front

        heads = ["", self.objective, *(each.name for each in self.ranges), "recipe"]
        rows = [
            "".join(
                f"<td>{escape(cell)}</td>"
                for cell in (mark, *self._cells(point), str(point.recipe))
            )
            for mark, point in (
                *((("best" if p == self.best else ""), p) for p in self.front),
                ("8 bits", self.widest),
            )
        ]
        head = "".join(f"<th>{escape(each)}</th>" for each in heads)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<p>{escape(self.summary())}</p>{plot_front(self)}<table><tr>{head}</tr>{body}</table>"
        )


def _bits_of(point: Point) -> str:
    """Return the bits of layers in their order, or how many have which."""
    schemes = [LayerScheme.of(each) for each in point.schemes.values()]
    acts = {str(each.act or "fp") for each in schemes}
    bits = [
        str(each.weight or "fp") + ("" if len(acts) == 1 else f"/{each.act or 'fp'}")
        for each in schemes
    ]
    if len(bits) <= MANY:
        return " ".join(bits)
    counts = Counter(bits)
    return ", ".join(f"{counts[each]} of {each}" for each in sorted(counts, key=_number))


def _number(text: str) -> float:
    first = text.partition("/")[0]
    return 32.0 if first == "fp" else float(first)


def plain(result: Result) -> dict[str, object]:
    """Return a result as JSON has it, with the front's recipes."""
    data = json.loads(result.model_dump_json())
    data["front"] = result.rows(result.front)
    data["best"] = None if result.best is None else result.rows([result.best])[0]
    return data
