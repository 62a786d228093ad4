"""Fit the cycle models of the VexiiRiscv cores: `python benchmarks/fit_cycles.py DATA --write`.

DATA is the folder of MiCo's tables (`benchmark_results` of its repository). Prints, for each table,
the errors on shapes that were held out, and writes `fewbit/analysis/cycles/coefficients.toml`.
`docs/cycles.md` explains the terms, and the rules by which costs are derived where there are no
measurements.
"""
# pyright: basic

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fewbit.analysis.cost.nnls import nnls
from fewbit.analysis.cycles.counts import Counts, count
from fewbit.analysis.cycles.estimate import CACHES
from fewbit.analysis.cycles.tables import Measurement, read_table

HOME = Path(__file__).parents[1] / "fewbit/analysis/cycles/coefficients.toml"
FOLDS = 5
ROUNDS = 6
FLOOR = 0.02
"""Errors below this count alike when rows are weighted."""

BASE = ("elements1", "elements32")
"""Terms that `elements` stands for: other widths come on top of them."""

Costs = dict[str, float]

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

UNCHECKED_ERROR = 0.10
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


def report(title: str, sample: Sample, predicted: np.ndarray) -> float:
    errors = np.abs(predicted - sample.cycles) / sample.cycles
    line = f"{title:28} {len(errors):5} rows  {errors.mean():6.2%} MAPE"
    line += f"  {np.quantile(errors, 0.95):6.1%} p95  {errors.max():6.1%} worst"
    places: dict[str, list[int]] = {}
    for row, shape in enumerate(sample.shapes):
        places.setdefault(shape, []).append(row)
    ranked = {
        shape: spearman(predicted[rows], sample.cycles[rows])
        for shape, rows in places.items()
        if len(rows) > 3
    }
    if ranked:
        worst = min(ranked, key=lambda shape: ranked[shape])
        median = float(np.median(list(ranked.values())))
        line += f"  Spearman {median:.3f}, worst {ranked[worst]:.2f}: {worst}"
    print(line)
    return float(errors.mean())


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


def derive(fitted: dict[tuple[str, str, str], Costs]) -> dict[tuple[str, str, str], Costs]:
    """Costs of what was not measured, by the rules of docs/cycles.md."""
    small, later = fitted["small", "2025", "conv2d"], fitted["small", "2026", "conv2d"]
    high = fitted["high", "2025", "conv2d"]
    steps = ("elements8", "elements4", "elements2")
    rounding = {name: high[name] * later[name] / small[name] for name in steps}
    # Images of the small tests are 14 or 12 pixels wide: what a row costs there is spread over two.
    before = small["outputs"] + small["loops"] + small["rows"] / 26
    dual = high["elements"] / small["elements"]
    per_output = dual * max(0.0, later["outputs"] + later["loops"] - before)
    product = ("outputs", "loops", "dots", "narrow", "steps", "rows", "misses")
    linear = fitted["small", "2025", "linear"]
    made: dict[tuple[str, str, str], Costs] = {
        ("high", "2026", "conv2d"): to_2026(high, rounding, per_output, single_issue=False),
        ("high", "2026", "linear"): to_2026(
            fitted["high", "2025", "linear"], rounding, per_output, single_issue=False
        ),
        ("high", "2026", "matmul"): to_2026(
            fitted["high", "2025", "matmul"], {}, 0.0, single_issue=False
        ),
        ("small", "2026", "linear"): {
            **linear,
            **{name: later[name] for name in (*product, *steps)},
        },
    }
    kernel = {name: later[name] for name in product if name != "outputs"}
    outputs = fitted["small", "2025", "matmul"]["outputs"]
    made["small", "2026", "matmul"] = {**kernel, "outputs": outputs, "calls": 0.0}
    for core in ("small", "high"):
        for pool in ("avgpool", "maxpool"):
            made[core, "2026", pool] = fitted[core, "2025", pool]
    return made


def write(path: Path, every: dict[tuple[str, str, str], tuple[Costs, float, str]]) -> None:
    lines = ["# Cycles of one of each count; written by benchmarks/fit_cycles.py.", ""]
    for (core, release, kind), (costs, error, source) in sorted(every.items()):
        lines += [f"[{core}.{release}.{kind}]", f"error = {error:.3f}", f'source = "{source}"']
        numbers = ", ".join(
            f"{name} = {value:.4g}" for name, value in sorted(costs.items()) if value > 0
        )
        lines += [f"cycles = {{ {numbers} }}", ""]
    path.write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    fitted: dict[tuple[str, str, str], Costs] = {}
    every: dict[tuple[str, str, str], tuple[Costs, float, str]] = {}
    for key, names in FITS.items():
        sample = Sample([row for name in names for row in read_table(options.data / f"{name}.csv")])
        fitted[key] = sample.fit()
        error = report(" ".join(key), sample, sample.held_out())
        every[key] = (fitted[key], error, f"fitted to {' and '.join(names)}")
    transfer = check_rule(options.data, fitted)
    for key, costs in derive(fitted).items():
        core, _, kind = key
        if kind.endswith("pool"):
            every[key] = every[core, "2025", kind]
        else:
            error = transfer if kind == "conv2d" else UNCHECKED_ERROR
            every[key] = (costs, error, "derived from the library of 2025")
    for (core, release, kind), (costs, _, _) in list(every.items()):
        if core == "small":
            every["cacheless", release, kind] = (
                without_cache(costs),
                CACHELESS_ERROR,
                "derived from small",
            )
    if options.write:
        write(HOME, every)


def check_rule(data: Path, fitted: dict[tuple[str, str, str], Costs]) -> float:
    """The rule that makes costs of 2026, where both are measured: small convolutions."""
    small, later = fitted["small", "2025", "conv2d"], fitted["small", "2026", "conv2d"]
    rounding = {name: later[name] for name in ("elements8", "elements4", "elements2")}
    guess = to_2026(small, rounding, 0.0, single_issue=True)
    sample = Sample(read_table(data / "mico_small_conv2d_zoo.csv"))
    predicted = np.array([price(guess, counts) for counts in sample.counts])
    return report("rule for 2026, on small", sample, predicted)


if __name__ == "__main__":
    main()
