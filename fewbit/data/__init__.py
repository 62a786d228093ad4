"""Data to try models on: MNIST, Fashion-MNIST, and synthetic sets that say so in their names."""

from __future__ import annotations

from fewbit.data.digits import mnist
from fewbit.data.fashion import fashion_mnist
from fewbit.data.split import Split
from fewbit.data.synthetic import synthetic_audio, synthetic_images, synthetic_tokens

__all__ = [
    "Split",
    "fashion_mnist",
    "mnist",
    "synthetic_audio",
    "synthetic_images",
    "synthetic_tokens",
]
