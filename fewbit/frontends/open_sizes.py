"""Sizes that a model leaves open, where programs hold static ones: StableHLO's front ends.

A batch that is left open is 1, which is said and can be chosen. Any other open size, of an image or
a text, has no such value: it must be given.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from fewbit.errors import OpenSizesWarning, UsageError

Sizes = Sequence[int | None]


def close_batch(name: str, sizes: Sizes) -> tuple[int, ...]:
    """A shape whose batch is 1 if it was open."""
    if None in sizes[1:]:
        written = _text(sizes)
        raise UsageError(
            f"the input '{name}' leaves sizes open: {written}",
            hint=f"give them: --input-shape {_text([s or 32 for s in sizes])}, for example",
        )
    return tuple(1 if size is None else size for size in sizes)


def warn_of_open(inputs: Mapping[str, Sizes]) -> None:
    """Say which inputs have a batch that was fixed, and how to choose it."""
    fixed = {name: sizes for name, sizes in inputs.items() if None in sizes}
    if not fixed:
        return
    named = ", ".join(f"'{name}' is {_text(sizes)}" for name, sizes in fixed.items())
    others = " ".join(
        f"--input-shape {_text([8 if s is None else s for s in sizes])}"
        for sizes in inputs.values()
    )
    warnings.warn(
        f"the program is for a batch of 1, which the model leaves open: {named}; "
        f"for another give it, {others}",
        OpenSizesWarning,
        stacklevel=4,
    )


def _text(sizes: Sizes) -> str:
    return "x".join("?" if size is None else str(size) for size in sizes) or "a scalar"
