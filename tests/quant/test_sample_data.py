"""Samples from files: how they are cut, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.errors import Error, ShapeError, UsageError
from fewbit.program.signature import Signature, TensorSpec
from fewbit.quant.sample_data import BATCH, read_samples

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def takes(*inputs: TensorSpec) -> Signature:
    return Signature("main", inputs, ())


ANY = takes(TensorSpec("x", (None, 3), "f32", F32))
FOUR = takes(TensorSpec("x", (4, 3), "f32", F32))
TOKENS = takes(TensorSpec("ids", (None, None), "i64", I64))
TWO = takes(TensorSpec("a", (None, 3), "f32", F32), TensorSpec("b", (None, 2), "f32", F32))


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def saved(folder: Path, name: str, array: np.ndarray[Any, Any]) -> Path:
    path = folder / f"{name}.npy"
    np.save(path, array)
    return path


def shapes(found: list[list[np.ndarray[Any, Any]]]) -> list[tuple[int, ...]]:
    return [piece[0].shape for piece in found]


def test_a_file_is_cut_into_pieces(tmp_path: Path) -> None:
    path = saved(tmp_path, "x", numbers(BATCH + 8, 3))
    assert shapes(read_samples(ANY, [path])) == [(BATCH, 3), (8, 3)]
    assert shapes(read_samples(ANY, [path], BATCH + 2)) == [(BATCH, 3), (2, 3)]
    assert shapes(read_samples(ANY, [path], 5)) == [(5, 3)]
    assert shapes(read_samples(FOUR, [path], 6)) == [(4, 3)] * 2
    assert len(read_samples(FOUR, [saved(tmp_path, "y", numbers(10, 3))])) == 2
    assert np.array_equal(np.concatenate([p[0] for p in read_samples(ANY, [path])]), np.load(path))


def test_inputs_that_are_stacked_or_alone(tmp_path: Path) -> None:
    assert shapes(read_samples(FOUR, [saved(tmp_path, "x", numbers(2, 4, 3))])) == [(4, 3)] * 2
    assert shapes(read_samples(ANY, [saved(tmp_path, "y", numbers(3))])) == [(1, 3)]


def test_several_files_and_folders(tmp_path: Path) -> None:
    for i in range(5):
        saved(tmp_path, str(i), numbers(3) + i)
    (tmp_path / "notes.txt").write_text("not data")
    found = read_samples(ANY, [tmp_path], 4)
    assert [float(piece[0][0, 0]) for piece in found] == [0, 1, 2, 3]
    assert len(read_samples(ANY, [tmp_path / "3.npy", tmp_path / "0.npy"])) == 2


def test_archives_name_the_inputs(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, b=numbers(6, 2), a=numbers(6, 3))
    ((a, b),) = read_samples(TWO, [path])
    assert (a.shape, b.shape) == ((6, 3), (6, 2))
    np.savez(path, anything=numbers(6, 3))
    assert shapes(read_samples(ANY, [path])) == [(6, 3)]
    with pytest.raises(UsageError, match="no array 'a'"):
        read_samples(TWO, [path])
    np.savez(path, a=numbers(40, 3), b=numbers(2, 2))
    with pytest.raises(ShapeError, match="different numbers"):
        read_samples(TWO, [path])


def test_types(tmp_path: Path) -> None:
    (piece,) = read_samples(ANY, [saved(tmp_path, "d", numbers(2, 3).astype(np.float64))])
    assert piece[0].dtype == F32
    (piece,) = read_samples(TOKENS, [saved(tmp_path, "i", np.ones((2, 5), np.int32))])
    assert piece[0].dtype == I64
    with pytest.raises(UsageError, match="uint8") as caught:
        read_samples(ANY, [saved(tmp_path, "u", np.ones((2, 3), np.uint8))])
    assert "scaled" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="float32"):
        read_samples(TOKENS, [saved(tmp_path, "f", numbers(2, 3))])


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no data 'nothing'") as caught:
        read_samples(ANY, ["nothing"])
    assert "mnist" in (caught.value.hint or "")
    with pytest.raises(ShapeError, match="2x5 does not fit 'x: \\?x3xf32'"):
        read_samples(ANY, [saved(tmp_path, "x", numbers(2, 5))])
    with pytest.raises(ShapeError, match="fewer than the 4"):
        read_samples(FOUR, [saved(tmp_path, "x", numbers(2, 3))])
    with pytest.raises(UsageError, match="0 samples"):
        read_samples(ANY, [saved(tmp_path, "x", numbers(2, 3))], 0)
    junk = tmp_path / "junk.npy"
    junk.write_bytes(b"junk")
    with pytest.raises(Error, match="not arrays of numpy") as place:
        read_samples(ANY, [junk])
    assert place.value.place.file == str(junk)
    junk.unlink()
    np.save(junk, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(Error, match="not arrays of numpy"):
        read_samples(ANY, [junk])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"no \.npy"):
        read_samples(ANY, [empty])


def test_data_by_name() -> None:
    images = takes(TensorSpec("x", (None, 3, 8, 8), "f32", F32))
    assert shapes(read_samples(images, ["synthetic-images"], 4)) == [(4, 3, 8, 8)]
