"""The file that llama.cpp is measured on: the same checkpoint, in the type nearest in bytes."""

from __future__ import annotations

from math import prod
from pathlib import Path

from fewbit.language.checkpoint import Checkpoint
from fewbit.language.export.weight_type import WeightType
from fewbit.language.export.write_gguf import write_gguf

BITS = {WeightType.Q4_0: 4.5, WeightType.Q8_0: 8.5, WeightType.F16: 16.0, WeightType.F32: 32.0}
"""What a weight takes, its share of scales included."""


def write_comparable(
    checkpoint: Checkpoint, path: Path, weight_bytes: int, chosen: WeightType | None = None
) -> None:
    """Write a GGUF file, of the chosen type or the one nearest to so many bytes."""
    elements = sum(prod(shape) for shape in checkpoint.weight_shapes().values())
    own = 8 * weight_bytes / elements
    nearest = min(BITS, key=lambda each: abs(BITS[each] - own))
    write_gguf(checkpoint, path, chosen or nearest)
