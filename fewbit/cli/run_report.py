"""What `fewbit run` says of an output: a line of text, or an object of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewbit.program.tensor_file import Array

SHOWN = 6
"""How many elements of an output are shown."""


def summary(name: str, array: Array) -> str:
    """Return a line: `output0: 1x10 float32, -0.12 to 0.31, mean 0.04: [0.1, -0.12, ...]`."""
    text = f"{name}: {sizes(array.shape)} {array.dtype}"
    if array.size == 0:
        return text
    if array.dtype.kind != "b":
        values = array.astype("float64")
        text += f", {values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
    first = [f"{value:.6g}" for value in array.reshape(-1)[:SHOWN].tolist()]
    more = ["..."] if array.size > SHOWN else []
    return f"{text}: [{', '.join(first + more)}]"


def plain_output(name: str, array: Array) -> dict[str, Any]:
    plain = {"name": name, "shape": array.shape, "dtype": str(array.dtype)}
    if array.size == 0:
        return plain
    values = array.astype("float64")
    bounds = {"least": values.min(), "greatest": values.max(), "mean": values.mean()}
    first = array.reshape(-1)[:SHOWN].tolist()
    return {**plain, **{key: float(value) for key, value in bounds.items()}, "first": first}


def sizes(shape: Sequence[int | None] | None) -> str:
    if shape is None:
        return "*"
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"
