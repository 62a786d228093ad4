"""Costs of counts from measured cycles: least squares of relative errors, none of them negative.

Rows are weighted anew in each round so that errors count, and not their squares. What a table
cannot tell is given: a table without tiny layers says nothing of what a call costs, and a fit puts
there whatever fits its larger ones a little better. Errors are those on rows of shapes that a fit
did not see at any width, or on a whole size of layers that it did not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fewbit.cost.cpu.nnls import nnls
from fewbit.cost.cycles.counts import Counts, count
from fewbit.cost.cycles.errors import Errors, Floats, errors_by_size, size_of
from fewbit.cost.cycles.estimate import CACHES
from fewbit.cost.cycles.tables import Measurement

FOLDS = 5
ROUNDS = 6
FLOOR = 0.02
"""Errors below this count alike when rows are weighted."""

BASE = ("elements1", "elements32")
"""Terms that `elements` stands for: other widths come on top of them."""

Costs = dict[str, float]


class Sample:
    """Rows of tables as a matrix of counts."""

    def __init__(self, rows: Sequence[Measurement]) -> None:
        self.rows = rows
        self.counts = [
            count(row.shape, row.act_bits, row.weight_bits, CACHES[row.core]) for row in rows
        ]
        names = dict.fromkeys(name for counts in self.counts for name in counts)
        self.names = [name for name in names if name not in BASE]
        self.matrix = np.array([[c.get(name, 0.0) for name in self.names] for c in self.counts])
        self.cycles = np.array([float(row.cycles) for row in rows])
        self.shapes = [str(row.shape) for row in rows]
        self.sizes = [size_of(row.shape) for row in rows]

    def fit(
        self, chosen: NDArray[np.bool_] | None = None, known: Mapping[str, float] = {}
    ) -> Costs:
        """Return the costs of the chosen rows, or of all; those that are `known` stay."""
        chosen = np.ones(len(self.cycles), bool) if chosen is None else chosen
        free = np.array([name not in known for name in self.names])
        given = np.array([known.get(name, 0.0) for name in self.names])
        relative = self.matrix[chosen] / self.cycles[chosen, None]
        wanted, relative = 1 - relative @ given, relative * free
        scale = np.maximum(relative.max(axis=0), 1e-30)
        weights, solution = np.ones(len(relative)), np.zeros(len(scale))
        for _ in range(ROUNDS):
            solution = nnls(relative / scale * weights[:, None], weights * wanted)
            errors = np.abs(relative / scale @ solution - wanted)
            weights = 1 / np.sqrt(np.maximum(errors, FLOOR))
            weights /= weights.mean()
        return dict(zip(self.names, (given + solution / scale * free).tolist(), strict=True))

    def hold_out(self, groups: Sequence[int], known: Mapping[str, float] = {}) -> Floats:
        """Return each row as predicted by a fit that saw no row of its group."""
        group = np.array(groups)
        predicted = np.zeros(len(self.cycles))
        for held in np.unique(group):
            inside = group == held
            costs = self.fit(~inside, known)
            predicted[inside] = self.price(costs)[inside]
        return predicted

    def folds(self) -> list[int]:
        """Return the fold of each row: all widths of a shape are in one."""
        order = sorted(set(self.shapes))
        np.random.default_rng(0).shuffle(order)
        places = {shape: place % FOLDS for place, shape in enumerate(order)}
        return [places[shape] for shape in self.shapes]

    def price(self, costs: Mapping[str, float]) -> Floats:
        """Return the cycles of all rows at these costs."""
        return np.array([price(costs, counts) for counts in self.counts])

    def errors(self, predicted: Floats) -> Floats:
        """Return the error of each row, as a part of its cycles."""
        return np.abs(predicted - self.cycles) / self.cycles

    def elsewhere(self, known: Mapping[str, float] = {}) -> float:
        """Return the error to expect of sizes that no row has.

        It is the worst that a size has when all layers of that size are held out; with one size
        alone, nothing can be said but the worst row.
        """
        if len(set(self.sizes)) == 1:
            return float(self.errors(self.price(self.fit(known=known))).max())
        errors = self.errors(self.hold_out(self.sizes, known))
        size = np.array(self.sizes)
        return max(float(errors[size == each].mean()) for each in set(self.sizes))

    def by_size(self, errors: Floats) -> Errors:
        """Return errors of rows by size and width."""
        bits = [max(row.act_bits, row.weight_bits) for row in self.rows]
        return errors_by_size(self.sizes, bits, errors)


def price(costs: Mapping[str, float], counts: Counts) -> float:
    return sum(costs.get(name, 0.0) * number for name, number in counts.items())
