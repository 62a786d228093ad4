"""Clothes from idx files, or by class as JSON with a split of our own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fewbit.data import fashion_mnist
from fewbit.errors import Error
from tests.data.archives import class_files, idx_files, random_images, write_folder, write_tarball


def clothes(each: int = 14) -> dict[int, NDArray[np.uint8]]:
    return {label: random_images(each, seed=label) for label in range(10)}


def as_bytes(images: NDArray[np.float32]) -> list[bytes]:
    return [(image * 255).round().astype(np.uint8).tobytes() for image in images]


def test_idx_files_have_the_published_split(tmp_path: Path) -> None:
    data = fashion_mnist(write_folder(tmp_path, idx_files()))
    assert np.array_equal(data.test_x[:, 0] * 255, random_images(20, seed=20))


def test_a_seventh_of_each_class_is_for_testing(tmp_path: Path) -> None:
    images = clothes()
    data = fashion_mnist(write_tarball(tmp_path / "clothes.tgz", class_files(images)))
    assert data.train_x.shape == (120, 1, 28, 28)
    assert np.bincount(data.train_y).tolist() == [12] * 10
    assert np.bincount(data.test_y).tolist() == [2] * 10
    label_of = {image.tobytes(): label for label, each in images.items() for image in each}
    for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y)):
        assert [label_of[image] for image in as_bytes(x)] == y.tolist()
    assert len({*as_bytes(data.train_x), *as_bytes(data.test_x)}) == 140
    assert len(set(data.train_y[:20].tolist())) > 5, "classes are not mixed"


def test_the_split_does_not_depend_on_the_order(tmp_path: Path) -> None:
    images = clothes()
    turned = {label: each[::-1] for label, each in images.items()}
    first = fashion_mnist(write_tarball(tmp_path / "a.tgz", class_files(images)))
    other = fashion_mnist(write_tarball(tmp_path / "b.tgz", class_files(turned)))
    assert np.array_equal(first.train_x, other.train_x)
    assert np.array_equal(first.test_y, other.test_y)


def test_an_image_that_occurs_twice_is_for_training(tmp_path: Path) -> None:
    images = clothes()
    images[3] = np.concatenate([images[3][:7], images[3][:7]])
    images[5][:12] = images[6][:12]
    data = fashion_mnist(write_tarball(tmp_path / "clothes.tgz", class_files(images)))
    assert set(as_bytes(data.train_x)).isdisjoint(as_bytes(data.test_x))
    assert np.bincount(data.test_y, minlength=10).tolist() == [2, 2, 2, 0, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"images": []}',
        b'{"data": []}',
        b'{"data": [[]]}',
        b'{"data": "text"}',
        b"[" * 100_000,
        json.dumps({"data": [[0] * 783]}).encode(),
        json.dumps({"data": [[0] * 784, [0] * 783]}).encode(),
        json.dumps({"data": [[256] + [0] * 783]}).encode(),
        json.dumps({"data": [[-1] + [0] * 783]}).encode(),
        json.dumps({"data": [[0.5] + [0] * 783]}).encode(),
        json.dumps({"data": [["1"] + [0] * 783]}).encode(),
        json.dumps({"data": [[10**30] + [0] * 783]}).encode(),
        json.dumps({"data": [[None] + [0] * 783]}).encode(),
    ],
)
def test_other_contents_are_errors(tmp_path: Path, content: bytes) -> None:
    files = class_files(clothes(1)) | {"clothes/4.json": content}
    with pytest.raises(Error, match=r"list of images|0 to 255") as raised:
        fashion_mnist(write_tarball(tmp_path / "clothes.tgz", files))
    assert "clothes/4.json" in (raised.value.place.file or "")


def test_a_missing_class_is_named(tmp_path: Path) -> None:
    files = class_files(clothes(1))
    del files["clothes/9.json"]
    with pytest.raises(Error, match=r"clothes/9\.json"):
        fashion_mnist(write_tarball(tmp_path / "clothes.tgz", files))


PACKAGE = os.environ.get("FEWBIT_FASHION_MNIST")


@pytest.mark.slow
@pytest.mark.skipif(PACKAGE is None, reason="FEWBIT_FASHION_MNIST names no tarball of the package")
def test_the_package_has_70000_images() -> None:
    assert PACKAGE is not None
    data = fashion_mnist(PACKAGE)
    assert np.bincount(data.train_y).tolist() == [6000] * 10
    assert np.bincount(data.test_y).tolist() == [1000] * 10
    assert set(as_bytes(data.train_x)).isdisjoint(as_bytes(data.test_x))
