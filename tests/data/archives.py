"""Tiny data sets in the forms in which large ones are published."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def idx(array: NDArray[np.uint8]) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return struct.pack(">I", 0x800 | array.ndim) + sizes + array.tobytes()


def random_images(count: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=(count, 28, 28), dtype=np.uint8)


def idx_files(train: int = 30, test: int = 20) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for part, count in (("train", train), ("t10k", test)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        files[f"{part}-images-idx3-ubyte"] = idx(random_images(count, seed=count))
        files[f"{part}-labels-idx1-ubyte"] = idx(labels)
    return files


def class_files(images: Mapping[int, NDArray[np.uint8]]) -> dict[str, bytes]:
    """Return JSON as in the npm package, with an empty image at the end of class 0."""
    files: dict[str, bytes] = {}
    for label, pixels in images.items():
        rows: list[list[int]] = pixels.reshape(len(pixels), 784).tolist()
        ending: list[list[int]] = [[]] if label == 0 else []
        files[f"clothes/{label}.json"] = json.dumps({"data": rows + ending}).encode()
    return files


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def write_tarball(
    path: Path, files: Mapping[str, bytes], mode: Literal["w", "w:gz"] = "w:gz"
) -> Path:
    with tarfile.open(path, mode) as tarball:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            tarball.addfile(member, io.BytesIO(data))
    return path
