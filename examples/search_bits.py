# pyright: basic
"""Bits for every layer of LeNet: searched for, compiled, and compared with two bits everywhere.

A budget is given as a recipe: what is found may take no more bytes than w2a8 does. The search shows
the trade-off around the budget, too, and each point of it is a recipe.

    python examples/search_bits.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

import fewbit
from fewbit.data import mnist

BUDGET = "w2a8"


def main(folder: Path) -> None:
    digits = mnist()
    found = fewbit.search(
        "zoo:lenet",
        data=digits,
        budget={"size": BUDGET},
        train=5,
        trials=12,
        free_ends=True,
        output=folder,
    )
    print(found)
    for point in found.front:
        print(f"{point.costs['size']:8,.0f} bytes {point.metrics['accuracy']:.1%}  {point.recipe}")
    assert found.best is not None
    print(f"\n{'recipe':>8} {'weights':>12} {'accuracy on test':>18}")
    # The float program, trained here, and compiled by two recipes.
    for name, recipe in ((BUDGET, BUDGET), ("best", folder / "best.toml")):
        artifact = fewbit.compile(folder / "model", recipe=recipe)
        (logits,) = artifact.run(digits.test_x)
        right = (logits.argmax(-1) == digits.test_y).mean()
        size = fewbit.quantize(fewbit.Program.load(folder / "model"), recipe).store.nbytes()
        print(f"{name:>8} {size:>6,} bytes {right:>18.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="fewbit-search-")))
