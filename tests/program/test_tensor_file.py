"""The header reader: every file that is not a store, or no longer one, is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as safetensors_numpy

from fewbit.errors import StoreError
from fewbit.program.store import WeightStore
from fewbit.program.tensor_file import Array

package_numpy: Any = safetensors_numpy  # it has no types of its own


def example() -> WeightStore:
    store = WeightStore()
    store.add("layers.0.weight", np.arange(12, dtype=np.uint8).reshape(3, 4))
    store.add("layers.0.scale", np.array([0.5, 0.25, 0.125], np.float32))
    store.add("layers.0.zero", np.array(3, np.int64))
    return store


def header_file(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str = "U8", shape: Any = (4,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


BAD_HEADERS: dict[str, tuple[Any, bytes, str]] = {
    "not an object": (b"[1]", b"", "not a safetensors"),
    "not JSON": (b"{oops", b"", "not valid JSON"),
    "not UTF-8": (b'{"\xff": 1}', b"", "not valid JSON"),
    "nested deeply": (b'{"a":' + b"[" * 100_000, b"", "not valid JSON"),
    "huge number": (b'{"a":' + b"9" * 10_000 + b"}", b"", "not valid JSON"),
    "two values": (b"{} {}", b"", "not valid JSON"),
    "key twice": (
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
        b"",
        "names 'a' twice",
    ),
    "field twice": (
        b'{"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}}',
        b"",
        "names 'dtype' twice",
    ),
    "empty key": ({"": entry()}, b"1234", "is empty"),
    "surrogate key": (
        b'{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
        b"",
        "not valid Unicode",
    ),
    "metadata not an object": ({"__metadata__": []}, b"", "not an object"),
    "metadata not strings": ({"__metadata__": {"a": 1}}, b"", "not a string"),
    "entry not an object": ({"a": 3}, b"", "not an object"),
    "field missing": ({"a": {"dtype": "U8", "shape": [4]}}, b"1234", "needs dtype, shape"),
    "field unknown": ({"a": entry() | {"more": 1}}, b"1234", "needs dtype, shape"),
    "dtype unknown": ({"a": entry("F4")}, b"1234", "dtype 'F4'"),
    "dtype not a text": ({"a": entry(dtype=["U8"])}, b"1234", "does not know"),  # pyright: ignore[reportArgumentType]
    "shape not a list": ({"a": entry(shape=4)}, b"1234", "list of natural numbers"),
    "shape negative": ({"a": entry(shape=[-4])}, b"1234", "list of natural numbers"),
    "shape twice negative": ({"a": entry(shape=[-2, -2])}, b"1234", "list of natural numbers"),
    "shape fractional": ({"a": entry(shape=[4.0])}, b"1234", "list of natural numbers"),
    "shape boolean": ({"a": entry(shape=[True, 4])}, b"1234", "list of natural numbers"),
    "shape huge": ({"a": entry(shape=[2**62, 2**62])}, b"1234", "too large for memory"),
    "shape beyond 64 bits": ({"a": entry(shape=[2**64])}, b"1234", "list of natural numbers"),
    "shape empty but huge": (
        {"a": entry(shape=[0, 2**62, 2**62], offsets=[0, 0])},
        b"",
        "too large for memory",
    ),
    "rank 65": ({"a": entry(shape=[1] * 65, offsets=[0, 1])}, b"1", "too large for memory"),
    "size differs": ({"a": entry(shape=[5])}, b"1234", "5 bytes, but its data_offsets span 4"),
    "offsets negative": ({"a": entry(offsets=[-4, 0])}, b"1234", "list of natural numbers"),
    "offsets reversed": ({"a": entry(offsets=[4, 0])}, b"1234", "not a begin and an end"),
    "one offset": ({"a": entry(offsets=[4])}, b"1234", "not a begin and an end"),
    "offset huge": ({"a": entry(offsets=[2**62, 2**62 + 4])}, b"1234", "cut short"),
    "beyond the file": ({"a": entry()}, b"123", "ends 1 bytes after"),
    "overlap": ({"a": entry(), "b": entry(offsets=[2, 6])}, b"123456", "'b' overlaps 'a'"),
    "same bytes": ({"a": entry(), "b": entry()}, b"1234", "overlaps"),
    "hole": ({"a": entry(), "b": entry(offsets=[5, 9])}, b"123456789", "owns the 1 bytes"),
    "bytes left over": ({"a": entry()}, b"12345", "owns the last 1 bytes"),
    "only data": ({}, b"1", "owns the last 1 bytes"),
    "future version": ({"__metadata__": {"fewbit.program.store": "2"}}, b"", "version '2'"),
    "tensor without hash": (
        {"__metadata__": {"fewbit.program.store": "1"}, "a": entry()},
        b"1234",
        "tensor without a hash",
    ),
    "hash without tensor": (
        {"__metadata__": {"fewbit.program.store": "1", "sha256:a": "0" * 64}},
        b"",
        "hash without a tensor",
    ),
    "hash not a hash": (
        {"__metadata__": {"fewbit.program.store": "1", "sha256:a": "Z" * 64}, "a": entry()},
        b"1234",
        "not a sha256",
    ),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_bad_header(tmp_path: Path, name: str) -> None:
    header, data, what = BAD_HEADERS[name]
    path = header_file(tmp_path / "w.safetensors", header, data)
    with pytest.raises(StoreError, match=what) as caught:
        WeightStore.open(path)
    assert caught.value.place.file == str(path)
    assert caught.value.hint
    assert len(caught.value.what) <= 300


@pytest.mark.parametrize("length", [100, 2**27, 2**32, 2**60, 2**63, 2**64 - 1])
def test_header_length_beyond_the_file(tmp_path: Path, length: int) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b"{}")
    with pytest.raises(StoreError, match=r"header should take|not a safetensors file"):
        WeightStore.open(path)


def test_a_long_name_does_not_flood_the_message(tmp_path: Path) -> None:
    path = header_file(tmp_path / "w.safetensors", {"k" * 100_000: 1})
    with pytest.raises(StoreError) as caught:
        WeightStore.open(path)
    assert len(str(caught.value)) < 1000


def make_directory(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link_loop(path: Path) -> None:
    path.symlink_to(path.name)


NOT_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "no such file"),
    "empty": (Path.touch, "empty"),
    "seven bytes": (lambda path: path.write_bytes(b"1234567"), "only 7 bytes"),
    "directory": (make_directory, "folder"),
    "pipe": (make_pipe, "not a regular file"),
    "loop": (make_link_loop, "cannot open"),
    "text": (lambda path: path.write_text("a text of some length"), "not a safetensors"),
    "zip": (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "not a safetensors"),
    "npy": (lambda path: np.save(path.open("wb"), np.zeros(9)), "not a safetensors"),
    "zeros": (lambda path: path.write_bytes(bytes(100)), "not a safetensors"),
}


@pytest.mark.parametrize("name", NOT_FILES)
def test_not_a_store(tmp_path: Path, name: str) -> None:
    make, what = NOT_FILES[name]
    path = tmp_path / "w.safetensors"
    make(path)
    with pytest.raises(StoreError, match=what) as caught:
        WeightStore.open(path)
    assert caught.value.place.file == str(path)
    assert caught.value.hint


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(StoreError, match="cannot open"):
        WeightStore.open("a\0b")


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    example().save(path)
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(StoreError):
            WeightStore.open(path)


def test_a_file_cut_short_while_open_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    example().save(path)
    store = WeightStore.open(path)
    os.truncate(path, 100)
    with pytest.raises(StoreError, match="became shorter"):
        store["layers.0.weight"]


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes of the header or its length: flip, delete, insert, repeat."""
    header = 8 + int.from_bytes(data[:8], "little")
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, header))
        kind = int(rng.integers(0, 5))
        if kind == 0:
            out[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            out[at] = b'0123456789-{}[],:" e.\\u'[int(rng.integers(0, 23))]
        elif kind == 2:
            del out[at]
        elif kind == 3:
            out.insert(at, int(rng.integers(0, 256)))
        else:
            length = int(rng.integers(1, 40))
            out[at:at] = out[at : at + length]
    return bytes(out)


def fuzz(folder: Path, count: int, seed: int) -> int:
    """Open mutated files and read what opens; the number that was refused."""
    path = folder / "w.safetensors"
    example().save(path)
    ours = path.read_bytes()
    package_numpy.save_file({k: np.array(v) for k, v in tensors_of(example())}, path)
    sources = [ours, path.read_bytes()]
    rng = np.random.default_rng(seed)
    refused = 0
    for i in range(count):
        path.write_bytes(mutate(sources[i % 2], rng))
        try:
            store = WeightStore.open(path)
            for key in store:
                store[key].sum()
            store.verify_all()
        except StoreError:
            refused += 1
    return refused


def tensors_of(store: WeightStore) -> list[tuple[str, Array]]:
    return [(key, store[key]) for key in store]


def test_mutated_headers_give_store_errors_only(tmp_path: Path) -> None:
    refused = fuzz(tmp_path, 600, seed=1)
    assert refused > 300


@pytest.mark.slow
def test_many_mutated_headers_give_store_errors_only(tmp_path: Path) -> None:
    assert fuzz(tmp_path, 50_000, seed=2) > 25_000
