"""What a search makes as good as it can, and all that is measured beside it.

One run of a candidate gives every number that its outputs allow; the objective is one of them, so
another objective later costs nothing where the numbers are stored. Accuracy takes few values on a
few hundred examples, so where two candidates are equal the loss decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UsageError
from fewbit.numerics.fidelity import (
    cross_entropy,
    kl_divergence,
    signal_to_noise,
    top1_agreement,
)

Array = NDArray[Any]
Metrics = Mapping[str, float]
Measure = Callable[[Array, Array | None], float]
"""A function of the user's: of outputs and labels, larger is better."""

USER = "user"
TOP = 5
BEST_SQNR = 200.0
"""Decibels of what is exact: infinity has no place in sums and files."""


@dataclass(frozen=True)
class Objective:
    """One of the numbers, and which of its values are good."""

    name: str
    larger_is_better: bool
    needs_labels: bool
    unit: str = ""
    tie: str | None = None
    """The number, smaller is better, that decides between equal ones."""
    measure: Measure | None = None

    def value(self, metrics: Metrics) -> tuple[float, float]:
        """Return what candidates are compared by: larger is better."""
        sign = 1.0 if self.larger_is_better else -1.0
        tie = 0.0 if self.tie is None else -metrics.get(self.tie, 0.0)
        return sign * metrics[self.name], tie

    @property
    def smooth(self) -> str:
        """The number that a model of candidates is fitted to; smaller is better."""
        return self.tie or self.name

    def penalty(self, metrics: Metrics) -> float:
        """Return a number without steps that is smaller for better candidates, and nearly adds up.

        Decibels do not, so of these it is the noise.
        """
        value = metrics[self.smooth]
        if self.smooth == "sqnr":
            return 10 ** (-value / 10)
        return -value if self.smooth == self.name and self.larger_is_better else value

    def show(self, metrics: Metrics) -> str:
        value = metrics[self.name]
        return f"{value:.2%}" if self.unit == "%" else f"{value:.4g}{self.unit}"


OBJECTIVES = {
    each.name: each
    for each in (
        Objective("accuracy", True, True, "%", tie="loss"),
        Objective("loss", False, True),
        Objective("kl", False, False),
        Objective("agreement", True, False, "%", tie="kl"),
        Objective("top5", True, False, "%", tie="kl"),
        Objective("perplexity", False, True, tie="loss"),
        Objective("sqnr", True, False, " dB"),
    )
}


def find_objective(name: str | Measure | None, *, has_data: bool, has_labels: bool) -> Objective:
    """Return an objective by its name, `file.py:function`, or a function; or what suits data."""
    if name is None:
        name = "accuracy" if has_labels else "kl" if has_data else "sqnr"
    if callable(name):
        return _user(name)
    if ".py:" in name:
        return _user(_load(name))
    if name not in OBJECTIVES:
        close = get_close_matches(name, OBJECTIVES, n=1)
        known = f"objectives are {', '.join(OBJECTIVES)}, and file.py:function"
        hint = f"did you mean '{close[0]}'?" if close else known
        raise UsageError(f"there is no objective '{name}'", hint=hint)
    objective = OBJECTIVES[name]
    if objective.needs_labels and not has_labels:
        what = "there are no labels in the data" if has_data else "there is no data"
        raise UsageError(
            f"{what}, so there is no {name}",
            hint="give labels (mnist, or file.py:loader that returns inputs and labels), "
            "or choose an objective without: kl, agreement, sqnr",
        )
    return objective


def objective_named(name: str) -> Objective:
    """Return an objective whose numbers are known; one of no known name is a user's."""
    return OBJECTIVES.get(name) or Objective(name, True, False)


def _user(function: Measure) -> Objective:
    """Return an objective with the name of a user's function."""
    name = getattr(function, "__name__", "")
    taken = (*OBJECTIVES, "")
    name = USER if name in taken or not name.isidentifier() else name
    return Objective(name, True, False, measure=function)


def measure(
    outputs: Array, reference: Array, labels: Array | None, objective: Objective
) -> dict[str, float]:
    """Return all numbers of a candidate's outputs; the reference is what the float model gave."""
    numbers = {"sqnr": min(signal_to_noise(reference, outputs), BEST_SQNR)}
    if outputs.ndim >= 2 and outputs.shape[-1] > 1:
        numbers["kl"] = float(kl_divergence(reference, outputs).mean())
        numbers["agreement"] = float(top1_agreement(reference, outputs).mean())
        numbers["top5"] = _top_agreement(reference, outputs)
    if labels is not None and _are_classes(outputs, labels):
        numbers["accuracy"] = float((outputs.argmax(-1) == labels).mean())
        numbers["loss"] = float(cross_entropy(outputs, labels).mean())
        numbers["perplexity"] = float(np.exp(min(numbers["loss"], 700.0)))
    if objective.measure is not None:
        numbers[objective.name] = _call(objective.measure, outputs, labels)
    if objective.name not in numbers:
        raise UsageError(
            f"outputs of shape {outputs.shape} have no {objective.name}",
            hint="choose sqnr, or a function of your own: --objective file.py:function",
        )
    return numbers


def _are_classes(outputs: Array, labels: Array) -> bool:
    return labels.dtype.kind in "iu" and labels.shape == outputs.shape[:-1]


def _top_agreement(reference: Array, outputs: Array) -> float:
    """Return which part of the likeliest few of the reference are among those of a candidate."""
    count = min(TOP, outputs.shape[-1])
    first, second = (np.argsort(-x, axis=-1)[..., :count] for x in (reference, outputs))
    return float((first[..., :, None] == second[..., None, :]).any(-1).mean())


def _call(function: Measure, outputs: Array, labels: Array | None) -> float:
    value: object = function(outputs, labels)
    try:
        number = float(cast(Any, value))
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise UsageError(
            f"the objective gave {value!r}, which is no number",
            hint="it is called with the outputs and the labels, and returns a float; larger is "
            "better",
        )
    return number


def _load(text: str) -> Measure:
    from fewbit.search.user_file import load_function

    return load_function(text)
