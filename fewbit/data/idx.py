"""Images and labels in idx files, four of them, as MNIST and Fashion-MNIST are published.

Their names say the part: the split is the one that was published, in its order.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fewbit.data.images import CLASSES, SIDE, as_floats
from fewbit.data.split import Split
from fewbit.errors import Error, Place

PARTS = ("train", "t10k")
FILES = tuple(
    f"{part}-{content}-ubyte" for part in PARTS for content in ("images-idx3", "labels-idx1")
)
BYTES = 8
"""The type code of unsigned bytes; the number of dimensions follows it."""


def read_split(files: Mapping[str, bytes], source: str) -> Split:
    """Return the split in the files of `source`, by their names."""
    missing = [name for name in FILES if name not in files]
    if missing:
        raise Error(
            f"there is no {missing[0]}",
            place=Place(file=source),
            hint=f"the data are four files, each of which may end in .gz: {', '.join(FILES)}",
        )
    (train_x, train_y), (test_x, test_y) = (_read_part(files, part, source) for part in PARTS)
    return Split(train_x, train_y, test_x, test_y)


def _read_part(
    files: Mapping[str, bytes], part: str, source: str
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
    pixels, labels = (
        parse(files[name], dimensions, Place(file=f"{source}/{name}"))
        for name, dimensions in zip(names, (3, 1), strict=True)
    )
    place = Place(file=f"{source}/{names[0]}")
    if pixels.shape[1:] != (SIDE, SIDE):
        sizes = "x".join(map(str, pixels.shape[1:]))
        raise Error(f"the images are {sizes}, not {SIDE}x{SIDE}", place=place)
    if len(pixels) != len(labels):
        raise Error(f"there are {len(pixels)} images and {len(labels)} labels", place=place)
    if not len(labels):
        raise Error("there are no images", place=place)
    if labels.max() >= CLASSES:
        place = Place(file=f"{source}/{names[1]}")
        raise Error(f"a label is {labels.max()}, not 0 to {CLASSES - 1}", place=place)
    return as_floats(pixels), labels.astype(np.int64)


def parse(data: bytes, dimensions: int, place: Place) -> NDArray[np.uint8]:
    """Return the array of an idx file of bytes with this many dimensions."""
    header = 4 * (1 + dimensions)
    magic = struct.pack(">I", BYTES << 8 | dimensions)
    if len(data) < header or data[:4] != magic:
        raise Error(
            f"not an idx file of bytes with {dimensions} dimensions",
            place=place,
            hint=f"it should begin with {magic.hex()}, not {data[:4].hex() or 'nothing'}",
        )
    sizes = struct.unpack_from(f">{dimensions}I", data, 4)
    count = len(data) - header
    expected = int(np.prod(sizes, dtype=object))
    if count != expected:
        raise Error(
            f"it has {count} bytes where its header says {expected}",
            place=place,
            hint="get the file again: it is cut off, or damaged",
        )
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(sizes)
