"""Fit the cycle models of the VexiiRiscv cores: `python benchmarks/fit_cycles.py DATA --write`.

DATA is the folder of MiCo's tables (`benchmark_results` of its repository). Prints, for each table,
the errors on shapes that were held out, and those by size and width. `coefficients.toml` of
`fewbit/cost/cycles` gets both, and `docs/cycles.md` the second; it also explains the terms, and the
rules by which costs are derived where there are no measurements. The error of a rule is that on a
table which it did not see.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewbit.cost.cycles.errors import SIZES, WIDTHS, Errors, combine
from fewbit.cost.cycles.fit import Costs, Sample
from fewbit.cost.cycles.tables import read_table

HOME = Path(__file__).parents[1] / "fewbit/cost/cycles/coefficients.toml"
PAGE = Path(__file__).parents[1] / "docs/cycles.md"
BEGIN, END = "<!-- by size and width: benchmarks/fit_cycles.py -->", "<!-- end -->"

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

NAMES = {"matmul": "matmuls", "linear": "linear", "conv2d": "convolutions"}
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


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks; equal values have equal ranks."""
    ranks: list[np.ndarray] = []
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
        errors = sample.errors(predicted)
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
    accuracy = Accuracy.of(sample, predicted)
    line = f"{title:28} {len(accuracy.errors):5} rows  {accuracy.mean:6.2%} MAPE"
    line += f"  {accuracy.p95:6.1%} p95  {accuracy.errors.max():6.1%} worst"
    if accuracy.ranks:
        worst = min(accuracy.ranks, key=lambda shape: accuracy.ranks[shape])
        line += f"  Spearman {accuracy.median_rank:.3f}, worst {accuracy.worst_rank:.2f}: {worst}"
    print(line)
    return accuracy.mean


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


@dataclass(frozen=True)
class Model:
    """Costs of one core, release and kind, and how far off they are."""

    costs: Costs
    error: float
    source: str
    errors: Errors | None
    """By size and width; not of pools."""


def write(path: Path, every: dict[Key, Model]) -> None:
    lines = ["# Cycles of one of each count; written by benchmarks/fit_cycles.py.", ""]
    for (core, release, kind), model in sorted(every.items()):
        title = f"[{core}.{release}.{kind}]"
        lines += [title, f"error = {model.error:.3f}", f'source = "{model.source}"']
        if model.errors is not None:
            rows = (", ".join(f"{cell:.3f}" for cell in row) for row in model.errors.cells)
            lines += [f"errors = [{', '.join(f'[{row}]' for row in rows)}]"]
            lines += [f"measured = [{', '.join(str(x).lower() for x in model.errors.measured)}]"]
        costs = sorted((name, value) for name, value in model.costs.items() if value > 0)
        numbers = ", ".join(f"{name} = {value:.4g}" for name, value in costs)
        lines += [f"cycles = {{ {numbers} }}", ""]
    path.write_text("\n".join(lines))


def table(every: dict[Key, Model]) -> str:
    """The errors by size and width as docs/cycles.md has them."""
    head = ["core, layers", "MACs", *(f"{bits} bits" if bits > 1 else "1 bit" for bits in WIDTHS)]
    rows = [head, ["---"] * len(head)]
    for (core, release, kind), model in sorted(every.items(), key=lambda each: each[0][1]):
        if model.errors is None or core == "cacheless":
            continue
        title = f"`{core}`, {NAMES[kind]}, {release}"
        for number, size in enumerate(SIZES):
            cells = [f"{100 * cell:.1f} %" for cell in model.errors.cells[number]]
            if not model.errors.measured[number]:
                cells = [f"*{cell}*" for cell in cells]
            rows.append([title if number == 0 else "", size, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_table(path: Path, text: str) -> None:
    before, rest = path.read_text().split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}")


def read_samples(data: Path) -> dict[Key, Sample]:
    return {
        key: Sample([row for name in names for row in read_table(data / f"{name}.csv")])
        for key, names in FITS.items()
    }


def fit_each(samples: dict[Key, Sample]) -> tuple[dict[Key, Costs], dict[Key, Costs]]:
    """Costs fitted to each table, and those among them that were given.

    No linear layer on `high` is so small that a table could tell what a call costs there. It costs
    what it does on `small`, in the proportion in which a core does the same floats faster.
    """
    known: dict[Key, Costs] = {key: {} for key in samples}
    linear = samples["small", "2025", "linear"].fit()
    conv = {core: samples[core, "2025", "conv2d"].fit() for core in ("small", "high")}
    dual = conv["high"]["elements"] / conv["small"]["elements"]
    known["high", "2025", "linear"] = {"calls": linear["calls"] * dual}
    return {key: each.fit(known=known[key]) for key, each in samples.items()}, known


def fit_all(samples: dict[Key, Sample]) -> dict[Key, Model]:
    """Costs, errors on what was held out, and sources, of every core, release and kind."""
    fitted, known = fit_each(samples)
    every: dict[Key, Model] = {}
    elsewhere = worst_elsewhere(samples, known)
    for key, sample in samples.items():
        predicted = sample.hold_out(sample.folds(), known[key])
        error = report(" ".join(key), sample, predicted)
        kind, source = key[2], f"fitted to {' and '.join(FITS[key])}"
        errors = sample.errors(predicted)
        cells = sample.by_size(errors).fill(elsewhere[kind]) if kind in elsewhere else None
        every[key] = Model(fitted[key], error, source, cells)
    rules = rule_errors(samples, fitted)
    for key, costs in derive(fitted).items():
        core, _, kind = key
        if kind.endswith("pool"):
            every[key] = every[core, "2025", kind]
            continue
        used = [rules[name] for name in RULES[core, kind]]
        error = sum(each.mean**2 for each in used) ** 0.5
        cells = combine([each.cells for each in used]).fill(elsewhere[kind])
        every[key] = Model(costs, error, "derived from the library of 2025", cells)
    for (core, release, kind), model in list(every.items()):
        if core == "small":
            every["cacheless", release, kind] = Model(
                without_cache(model.costs), CACHELESS_ERROR, "derived from small", expect(model)
            )
    return every


def expect(small: Model) -> Errors | None:
    """Errors of `cacheless`: what is expected, or that of `small` where this is more."""
    if small.errors is None:
        return None
    cells = tuple(tuple(max(x, CACHELESS_ERROR) for x in row) for row in small.errors.cells)
    return Errors(cells, (False,) * len(SIZES))


def worst_elsewhere(samples: dict[Key, Sample], known: dict[Key, Costs]) -> dict[str, float]:
    """The error to expect of sizes that a table of a kind does not have.

    It is the worst of all tables of that kind, since most have no layers far smaller or larger than
    the rest that could be held out.
    """
    kinds = {key[2] for key in samples if not key[2].endswith("pool")}
    return {
        kind: max(each.elsewhere(known[key]) for key, each in samples.items() if key[2] == kind)
        for kind in kinds
    }


@dataclass(frozen=True)
class Rule:
    """How far off a rule is on a table whose costs it does not use."""

    mean: float
    cells: Errors


def rule_errors(samples: dict[Key, Sample], fitted: dict[Key, Costs]) -> dict[str, Rule]:
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
    rules: dict[str, Rule] = {}
    for name, (key, costs) in guesses.items():
        sample = samples[key]
        predicted = sample.price(costs)
        mean = report(f"rule: {name}", sample, predicted)
        rules[name] = Rule(mean, sample.by_size(sample.errors(predicted)))
    return rules


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
    print(table(every))
    if options.write:
        write(HOME, every)
        write_table(PAGE, table(every))


if __name__ == "__main__":
    main()
