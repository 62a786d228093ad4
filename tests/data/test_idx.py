"""All digits from idx files: the published split, and an error for all that is not such files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from fewbit.data import mnist
from fewbit.errors import Error, UsageError
from tests.data.archives import idx, idx_files, random_images, write_folder, write_tarball

TRAIN, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def test_a_folder_has_the_published_split(tmp_path: Path) -> None:
    data = mnist(write_folder(tmp_path, idx_files()))
    assert data.train_x.shape == (30, 1, 28, 28)
    assert data.test_x.shape == (20, 1, 28, 28)
    assert data.train_x.dtype == np.float32
    assert data.train_y.dtype == np.int64
    assert np.array_equal(data.train_x[:, 0] * 255, random_images(30, seed=30))
    assert data.test_y.tolist() == [*range(10)] * 2


def test_files_may_be_compressed(tmp_path: Path) -> None:
    files = idx_files()
    plain = mnist(write_folder(tmp_path / "plain", files))
    packed = {f"{name}.gz": gzip.compress(data) for name, data in files.items()}
    data = mnist(write_folder(tmp_path / "packed", packed))
    assert np.array_equal(data.train_x, plain.train_x)
    assert np.array_equal(data.test_y, plain.test_y)


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_a_tarball_is_read_in_place(tmp_path: Path, mode: Literal["w", "w:gz"]) -> None:
    path = write_tarball(tmp_path / "data.tgz", {"readme.md": b"text", **idx_files()}, mode)
    assert len(mnist(path).train_y) == 30
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    files = idx_files()
    del files[LABELS]
    with pytest.raises(Error, match=LABELS):
        mnist(write_folder(tmp_path, files))


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder or tarball"):
        mnist(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (TRAIN, b"", "not an idx file"),
        (TRAIN, idx(random_images(30))[:-1], "23519 bytes where its header says 23520"),
        (TRAIN, idx(random_images(30)) + b"\0", "23521 bytes"),
        (TRAIN, idx(random_images(29)), "29 images and 30 labels"),
        (TRAIN, idx(random_images(30)[:, :, :27].copy()), "28x27, not 28x28"),
        (TRAIN, b"\0\0\x08\x03" + b"\xff" * 12, "header says"),
        (LABELS, idx(random_images(30)), "with 1 dimensions"),
        (LABELS, idx(np.full(30, 10, dtype=np.uint8)), "a label is 10"),
        (LABELS, b"\x1f\x8bnot gzip", "cannot be unpacked"),
        (LABELS, gzip.compress(idx(np.zeros(30, np.uint8)), mtime=0)[:-9], "cut off"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    folder = write_folder(tmp_path, idx_files() | {name: data})
    with pytest.raises(Error, match=message) as raised:
        mnist(folder)
    assert name in (raised.value.place.file or "")


def test_empty_parts_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no images"):
        mnist(write_folder(tmp_path, idx_files(train=0)))
