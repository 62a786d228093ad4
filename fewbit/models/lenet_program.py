"""LeNet-5 in mixed precision, as text in the `mico` dialect.

`lenet.mlir` is the network with its data left out (`dense<...>`); `lenet_text` fills the data in
at random, so that the program parses, verifies and runs.
"""

from __future__ import annotations

import re
from importlib.resources import files
from math import prod

import numpy as np

from fewbit.numerics import Width, pack, quantize_weight

_ELIDED = re.compile(
    r": tensor<(?P<shape>[\dx]+)x(?:f32|!mico\.int<(?P<bits>\d)>)> = dense<\.\.\.>"
)


def lenet_text(seed: int = 0) -> str:
    """The text of LeNet with random weights; the same weights for the same seed."""
    rng = np.random.default_rng(seed)
    template = files("fewbit.models").joinpath("lenet.mlir").read_text(encoding="utf-8")

    def fill(match: re.Match[str]) -> str:
        shape = tuple(int(extent) for extent in match["shape"].split("x"))
        values = rng.standard_normal(shape, dtype=np.float32) / np.float32(prod(shape[1:]) ** 0.5)
        if match["bits"]:
            width = Width.of(int(match["bits"]))
            quantized = quantize_weight(values, width, granularity="tensor")
            data = pack(quantized.values.reshape(shape[0], -1), width)
        else:
            data = values
        return match[0].replace("...", f'"0x{data.tobytes().hex().upper()}"')

    return _ELIDED.sub(fill, template)
