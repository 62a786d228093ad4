"""The form that MNIST and its successors share: gray images of 28 x 28 in ten classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIDE = 28
CLASSES = 10


def as_floats(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return bytes of pixels as images: float32 [N, 1, 28, 28] from 0 to 1."""
    images = pixels.reshape(-1, 1, SIDE, SIDE).astype(np.float32)
    images /= np.float32(255)
    return images
