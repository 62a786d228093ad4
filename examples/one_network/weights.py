"""The numbers of the network: the same for every framework. Kernels are height, width, in, out."""

from __future__ import annotations

from typing import Any

import numpy as np

Tree = dict[str, dict[str, Any]]
EPS = 1e-3


def make_weights(seed: int = 0) -> Tree:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def positive(*shape: int) -> Any:
        return (rng.random(shape) + 0.5).astype(np.float32)

    return {
        "conv1": {"kernel": normal(3, 3, 3, 16)},
        "norm1": {
            "scale": positive(16),
            "bias": normal(16),
            "mean": normal(16),
            "var": positive(16),
        },
        "conv2": {"kernel": normal(3, 3, 16, 32), "bias": normal(32)},
        "fc": {"kernel": normal(4 * 4 * 32, 10), "bias": normal(10)},
    }
