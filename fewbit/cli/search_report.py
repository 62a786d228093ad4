"""What `fewbit search` prints: what can be reached, what was found, what layers lose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.base.console import wide_console
from fewbit.base.files import replacing_file
from fewbit.base.progress import say

if TYPE_CHECKING:
    from fewbit.search.result import Result
    from fewbit.search.run import Search
    from fewbit.search.sensitivity import Sensitivity

SENSITIVITY = "sensitivity.svg"


def print_ranges(search: Search) -> None:
    """Print the least and most of every cost, with what the model is worth at each end."""
    from rich.table import Table

    from fewbit.search.run import warn_untrained

    result = search.result
    title = f"What can be reached: {result.model} on {result.target}, {search.plan.text}"
    table = Table(title=title, title_justify="left")
    for name in ("cost", "least", result.objective, "most", result.objective, "budget"):
        table.add_column(name, justify="left" if name == "cost" else "right")
    for each in result.ranges:
        table.add_row(
            each.name,
            each.show(each.least),
            result.show(each.cheapest),
            each.show(each.most),
            result.show(result.widest.metrics),
            "" if each.limit is None else each.show(each.limit),
        )
    wide_console().print(table)
    if (note := warn_untrained(result, search.classes)) is not None:
        say(note)


def print_result(result: Result, folder: Path, model: str, artifact: str | None) -> None:
    """Print the front and the best recipe, and what to do with it."""
    from fewbit.search.result import BEST, SCALES
    from fewbit.search.run import MODEL
    from fewbit.targets.registry import DEFAULT_TARGET

    print_found(result, folder)
    if artifact is not None:
        print(f"compiled: {artifact}")
    elif result.best is not None:
        named = str(folder / MODEL) if (folder / MODEL).is_dir() else model
        target = "" if result.target == DEFAULT_TARGET else f" -t {result.target}"
        scales = f" --calibrate {(folder / BEST).with_suffix(SCALES)}" if result.best.scales else ""
        print(f"next: fewbit compile {named} -r {folder / BEST}{scales}{target}")


def print_found(result: Result, folder: Path) -> None:
    wide_console().print(result.show_table())
    print(result.summary())
    print(f"files: {folder}")


def columns_of(sensitivity: Sensitivity) -> list[str]:
    """Return all schemes that some unit may have, in their order."""
    return list(
        dict.fromkeys(
            str(scheme)
            for unit in sorted(sensitivity.space.units, key=lambda u: -len(u.choices))
            for scheme in unit.choices
        )
    )


def print_sensitivity(found: Sensitivity, search: Search, folder: Path) -> None:
    """Print what each layer loses at each of its schemes, and write the picture."""
    from rich.table import Table

    from fewbit.search.plot import plot_sensitivity

    name = search.objective.smooth if search.objective.smooth in found.widest else "sqnr"
    is_better = name == "sqnr" or (
        name == search.objective.name and search.objective.larger_is_better
    )
    losses = found.losses(name, is_better)
    columns = columns_of(found)
    title = f"What {name} loses where one layer alone has fewer bits: {search.settings.name}"
    table = Table("layer", title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    rows: list[tuple[str, list[float | None]]] = []
    for unit, row in zip(found.space.units, losses, strict=True):
        by_scheme = {str(s): x for s, x in zip(unit.choices, row, strict=True)}
        rows.append((unit.name, [by_scheme.get(column) for column in columns]))
    for unit_name, cells in rows:
        table.add_row(unit_name, *("" if x is None else f"{x:.3g}" for x in cells))
    wide_console().print(table)
    pairs = zip(found.space.units, losses, strict=True)
    most, worst = max((max(row), unit.name) for unit, row in pairs)
    print(f"the most sensitive layer is {worst}: it loses {most:.3g} of {name}")
    path = folder / SENSITIVITY
    with replacing_file(path) as file:
        file.write(plot_sensitivity(title, columns, rows).encode())
    print(f"picture: {path}")


def plain_sensitivity(found: Sensitivity, model: str) -> dict[str, object]:
    """Return all numbers as JSON has them."""
    return {
        "model": model,
        "widest": dict(found.widest),
        "layers": [
            {
                "layers": [layer.name for layer in unit.layers],
                "choices": [
                    {"scheme": str(scheme), **numbers}
                    for scheme, numbers in zip(unit.choices, row, strict=True)
                ],
            }
            for unit, row in zip(found.space.units, found.rows, strict=True)
        ],
    }
