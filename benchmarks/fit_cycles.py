"""Fit the cycle models of the VexiiRiscv cores: `python benchmarks/fit_cycles.py DATA --write`.

DATA is the folder of MiCo's tables (`benchmark_results` of its repository). Prints, for each table,
the errors on shapes that were held out, and writes `fewbit/cost/cycles/coefficients.toml`.
`docs/cycles.md` explains the terms, and the rules by which costs are derived where there are no
measurements. The error of a rule is that on a table which it did not see.
"""
# pyright: basic

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewbit.cost.cpu.nnls import nnls
from fewbit.cost.cycles.counts import Counts, count
from fewbit.cost.cycles.estimate import CACHES
from fewbit.cost.cycles.tables import Measurement, read_table

HOME = Path(__file__).parents[1] / "fewbit/cost/cycles/coefficients.toml"
FOLDS = 5
ROUNDS = 6
FLOOR = 0.02
"""Errors below this count alike when rows are weighted."""

BASE = ("elements1", "elements32")
"""Terms that `elements` stands for: other widths come on top of them."""

Costs = dict[str, float]
Key = tuple[str, str, str]
"""Core, release and kind of layer."""

FITS = {
    ("small", "2025", "matmul"): ["mico_small"],
    ("high", "2025", "matmul"): ["mico_high"],
    ("small", "2025", "linear"): ["mico_small_bitlinear_test"],
    ("high", "2025", "linear"): ["mico_high_bitlinear_test"],
    ("small", "2025", "conv2d"): ["mico_small_bitconv2d_test"],
    ("high", "2025", "conv2d"): ["mico_high_bitconv2d_test", "mico_high_bitconv2d_test_larger"],
    ("small", "2026", "conv2d"): ["mico_small_conv2d_zoo"],
    ("small", "2025", "avgpool"): ["mico_small_avgpool4d_f32_test"],
    ("small", "2025", "maxpool"): ["mico_small_maxpool4d_f32_test"],
    ("high", "2025", "avgpool"): ["mico_high_avgpool4d_f32_test"],
    ("high", "2025", "maxpool"): ["mico_high_maxpool4d_f32_test"],
}

ROUNDING = ("elements8", "elements4", "elements2")
PRODUCT = ("outputs", "loops", "dots", "narrow", "steps", "rows", "misses")

RULES = {
    ("high", "conv2d"): ("release", "core conv2d"),
    ("high", "linear"): ("release", "core linear"),
    ("high", "matmul"): ("release", "core linear"),
    ("small", "linear"): ("release", "kind"),
    ("small", "matmul"): ("release", "kind"),
}
"""What costs of 2026 are derived by, where they are; errors of several rules add as squares."""

CACHELESS_ERROR = 0.25
"""Expected of what is derived; nothing measured says so."""


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

    def fit(self, chosen: np.ndarray | None = None) -> Costs:
        """Costs, none negative, for which relative errors are least.

        Rows are weighted anew so that the sum of errors counts, not that of their squares.
        """
        chosen = np.ones(len(self.cycles), bool) if chosen is None else chosen
        relative = self.matrix[chosen] / self.cycles[chosen, None]
        scale = np.maximum(relative.max(axis=0), 1e-30)
        weights = np.ones(len(relative))
        found = np.zeros(len(scale))
        for _ in range(ROUNDS):
            found = nnls(relative / scale * weights[:, None], weights)
            errors = np.abs(relative / scale @ found - 1)
            weights = 1 / np.sqrt(np.maximum(errors, FLOOR))
            weights /= weights.mean()
        return dict(zip(self.names, found / scale, strict=True))

    def held_out(self) -> np.ndarray:
        """Each row as predicted by a fit that saw nothing of its shape."""
        order = sorted(set(self.shapes))
        np.random.default_rng(0).shuffle(order)
        fold = np.array([order.index(shape) % FOLDS for shape in self.shapes])
        predicted = np.zeros(len(self.cycles))
        for held in range(FOLDS):
            costs = self.fit(fold != held)
            inside = np.flatnonzero(fold == held)
            predicted[inside] = [price(costs, self.counts[row]) for row in inside]
        return predicted

    def priced(self, costs: Costs) -> np.ndarray:
        return np.array([price(costs, counts) for counts in self.counts])


def price(costs: Costs, counts: Counts) -> float:
    return sum(costs.get(name, 0.0) * number for name, number in counts.items())


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks; equal values have equal ranks."""
    ranks = []
    for values in (a, b):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        last = np.cumsum(counts)
        ranks.append(((last - counts + last - 1) / 2)[inverse])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


@dataclass(frozen=True)
class Accuracy:
    """How far predictions are from measurements."""

    errors: np.ndarray
    """The error of each row, as a part of its cycles."""
    ranks: dict[str, float]
    """Spearman of the widths of each shape that has several."""

    @staticmethod
    def of(sample: Sample, predicted: np.ndarray) -> Accuracy:
        errors = np.abs(predicted - sample.cycles) / sample.cycles
        places: dict[str, list[int]] = {}
        for row, shape in enumerate(sample.shapes):
            places.setdefault(shape, []).append(row)
        ranks = {
            shape: spearman(predicted[rows], sample.cycles[rows])
            for shape, rows in places.items()
            if len(rows) > 3
        }
        return Accuracy(errors, ranks)

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def p95(self) -> float:
        return float(np.quantile(self.errors, 0.95))

    @property
    def median_rank(self) -> float:
        return float(np.median(list(self.ranks.values())))

    @property
    def worst_rank(self) -> float:
        return min(self.ranks.values())


def report(title: str, sample: Sample, predicted: np.ndarray) -> float:
    found = Accuracy.of(sample, predicted)
    line = f"{title:28} {len(found.errors):5} rows  {found.mean:6.2%} MAPE"
    line += f"  {found.p95:6.1%} p95  {found.errors.max():6.1%} worst"
    if found.ranks:
        worst = min(found.ranks, key=lambda shape: found.ranks[shape])
        line += f"  Spearman {found.median_rank:.3f}, worst {found.worst_rank:.2f}: {worst}"
    print(line)
    return found.mean


def to_2026(old: Costs, rounding: Costs, per_output: float, single_issue: bool) -> Costs:
    """The kernels in C, given costs of those in assembly.

    A word of the wider operand needs no pointer of its own any more, which saves a slot where
    instructions go one by one. A step is now a word of the narrower operand. Rounding is an
    instruction.
    """
    made = dict(old)
    made["dots"] = old["dots"] - (1.0 if single_issue else 0.0)
    made["narrow"] = old["narrow"] + old["steps"]
    made["steps"] = 0.0
    made["outputs"] = old["outputs"] + per_output
    made |= {name: value for name, value in rounding.items() if name in old}
    return made


def without_cache(costs: Costs) -> Costs:
    return {name: value for name, value in costs.items() if name != "misses"}


def derive(fitted: dict[Key, Costs]) -> dict[Key, Costs]:
    """Costs of what was not measured, by the rules of docs/cycles.md."""
    small, later = fitted["small", "2025", "conv2d"], fitted["small", "2026", "conv2d"]
    high = fitted["high", "2025", "conv2d"]
    rounding = {name: high[name] * later[name] / small[name] for name in ROUNDING}
    # Images of the small tests are 14 or 12 pixels wide: what a row costs there is spread over two.
    before = small["outputs"] + small["loops"] + small["rows"] / 26
    dual = high["elements"] / small["elements"]
    per_output = dual * max(0.0, later["outputs"] + later["loops"] - before)
    linear = fitted["small", "2025", "linear"]
    made: dict[Key, Costs] = {
        ("high", "2026", "conv2d"): to_2026(high, rounding, per_output, single_issue=False),
        ("high", "2026", "linear"): to_2026(
            fitted["high", "2025", "linear"], rounding, per_output, single_issue=False
        ),
        ("high", "2026", "matmul"): to_2026(
            fitted["high", "2025", "matmul"], {}, 0.0, single_issue=False
        ),
        ("small", "2026", "linear"): {
            **linear,
            **{name: later[name] for name in (*PRODUCT, *ROUNDING)},
        },
    }
    kernel = {name: later[name] for name in PRODUCT if name != "outputs"}
    outputs = fitted["small", "2025", "matmul"]["outputs"]
    made["small", "2026", "matmul"] = {**kernel, "outputs": outputs, "calls": 0.0}
    for core in ("small", "high"):
        for pool in ("avgpool", "maxpool"):
            made[core, "2026", pool] = fitted[core, "2025", pool]
    return made


def write(path: Path, every: dict[Key, tuple[Costs, float, str]]) -> None:
    lines = ["# Cycles of one of each count; written by benchmarks/fit_cycles.py.", ""]
    for (core, release, kind), (costs, error, source) in sorted(every.items()):
        lines += [f"[{core}.{release}.{kind}]", f"error = {error:.3f}", f'source = "{source}"']
        numbers = ", ".join(
            f"{name} = {value:.4g}" for name, value in sorted(costs.items()) if value > 0
        )
        lines += [f"cycles = {{ {numbers} }}", ""]
    path.write_text("\n".join(lines))


def read_samples(data: Path) -> dict[Key, Sample]:
    return {
        key: Sample([row for name in names for row in read_table(data / f"{name}.csv")])
        for key, names in FITS.items()
    }


def fit_all(samples: dict[Key, Sample]) -> dict[Key, tuple[Costs, float, str]]:
    """Costs, errors on what was held out, and sources, of every core, release and kind."""
    fitted = {key: sample.fit() for key, sample in samples.items()}
    every: dict[Key, tuple[Costs, float, str]] = {}
    for key, sample in samples.items():
        error = report(" ".join(key), sample, sample.held_out())
        every[key] = (fitted[key], error, f"fitted to {' and '.join(FITS[key])}")
    errors = rule_errors(samples, fitted)
    for key, costs in derive(fitted).items():
        core, _, kind = key
        if kind.endswith("pool"):
            every[key] = every[core, "2025", kind]
        else:
            error = sum(errors[rule] ** 2 for rule in RULES[core, kind]) ** 0.5
            every[key] = (costs, error, "derived from the library of 2025")
    for (core, release, kind), (costs, _, _) in list(every.items()):
        if core == "small":
            every["cacheless", release, kind] = (
                without_cache(costs),
                CACHELESS_ERROR,
                "derived from small",
            )
    return every


def rule_errors(samples: dict[Key, Sample], fitted: dict[Key, Costs]) -> dict[str, float]:
    """Errors of the rules of `derive`, each on a measured table whose costs it does not use.

    `release`: convolutions of 2026 on small, from those of 2025; that rounding became an
    instruction is known, and costs nothing. `kind`: linear layers on small, whose product and
    quantization are those of convolutions. `core`: a kind of layer on high, from another kind there
    and what the same change of kind does on small.
    """
    conv, linear = fitted["small", "2025", "conv2d"], fitted["small", "2025", "linear"]
    guesses: dict[str, tuple[Key, Costs]] = {
        "release": (
            ("small", "2026", "conv2d"),
            to_2026(conv, dict.fromkeys(ROUNDING, 0.0), 0.0, single_issue=True),
        ),
        "kind": (
            ("small", "2025", "linear"),
            {**linear, **{name: conv.get(name, 0.0) for name in (*PRODUCT, *ROUNDING)}},
        ),
        "core linear": (
            ("high", "2025", "linear"),
            in_proportion(fitted, "conv2d", "linear"),
        ),
        "core conv2d": (
            ("high", "2025", "conv2d"),
            in_proportion(fitted, "linear", "conv2d"),
        ),
    }
    return {
        name: report(f"rule: {name}", samples[key], samples[key].priced(costs))
        for name, (key, costs) in guesses.items()
    }


def in_proportion(fitted: dict[Key, Costs], known: str, wanted: str) -> Costs:
    """Costs of a kind on high, as another kind there changes where small goes from it to this."""
    there = fitted["high", "2025", known]
    before, after = fitted["small", "2025", known], fitted["small", "2025", wanted]
    dual = there["elements"] / before["elements"]
    return {
        name: there.get(name, 0.0) * cost / before[name]
        if before.get(name, 0.0) > 0
        else cost * dual
        for name, cost in after.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    every = fit_all(read_samples(options.data))
    if options.write:
        write(HOME, every)


if __name__ == "__main__":
    main()
