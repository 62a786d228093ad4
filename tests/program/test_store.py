"""The weight store: what goes in comes out, and nothing damaged gets through."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy as safetensors_numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.attributes import RefAttr
from fewbit.errors import Error, StoreError
from fewbit.program.store import WeightRef, WeightStore, sha256_of_tensor
from fewbit.program.tensor_file import DTYPES, Array

package: Any = safetensors  # it has no types of its own
package_numpy: Any = safetensors_numpy

ROOT = Path(__file__).resolve().parents[2]


def fill(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """An array of random bytes; booleans are 0 or 1."""
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
    if dtype == np.bool_:
        raw &= 1
    return raw.view(dtype).reshape(shape)


def same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def example() -> WeightStore:
    store = WeightStore()
    store.add("layers.0.weight", np.arange(12, dtype=np.uint8).reshape(3, 4))
    store.add("layers.0.scale", np.array([0.5, 0.25, 0.125], np.float32))
    store.add("layers.0.zero", np.array(3, np.int64))
    return store


# Round trips

REFERABLE = [chr(code) for code in range(32, 127) if chr(code) not in '"\\']


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Array]:
    name = st.text(st.sampled_from(REFERABLE), min_size=1, max_size=8)
    keys = draw(st.lists(name.filter(lambda k: k != "__metadata__"), unique=True, max_size=4))
    shape = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    dtypes = st.sampled_from(list(DTYPES.values()))
    return {key: fill(draw(dtypes), draw(shape), seed) for seed, key in enumerate(keys)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(arrays=tensors())
def test_round_trip(tmp_path: Path, arrays: dict[str, Array]) -> None:
    store = WeightStore()
    refs = {key: store.add(key, array) for key, array in arrays.items()}
    path = tmp_path / "weights.safetensors"
    store.save(path)
    again = WeightStore.open(path)
    assert again.keys() == arrays.keys()
    for key, array in arrays.items():
        assert same(again[key], array)
        assert same(again.get(refs[key]), array)
        assert again.ref(key) == refs[key]
    again.verify_all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(arrays=tensors())
def test_equal_content_gives_equal_bytes_in_any_order(
    tmp_path: Path, arrays: dict[str, Array]
) -> None:
    files: list[bytes] = []
    for keys in (list(arrays), list(reversed(arrays))):
        store = WeightStore()
        for key in keys:
            store.add(key, arrays[key])
        written = store.save(tmp_path / "w.safetensors")
        data = (tmp_path / "w.safetensors").read_bytes()
        assert written.sha256 == hashlib.sha256(data).hexdigest()
        assert written.size == len(data)
        assert written.header_sha256 == WeightStore.open(tmp_path / "w.safetensors").header_sha256
        files.append(data)
    assert files[0] == files[1]


def test_saving_an_opened_store_gives_the_same_file(tmp_path: Path) -> None:
    first = example().save(tmp_path / "a.safetensors")
    assert WeightStore.open(tmp_path / "a.safetensors").save(tmp_path / "b.safetensors") == first


def test_a_store_can_be_saved_over_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    example().save(path)
    store = WeightStore.open(path)
    mapped = store["layers.0.weight"]
    store.add("more", np.ones(3, np.float32))
    store.save(path)
    assert same(mapped, example()["layers.0.weight"])
    assert sorted(WeightStore.open(path)) == sorted(store)
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.safetensors"
    before = example().save(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Error, match="No space left"):
        WeightStore().save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before.sha256
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_tensors_are_aligned_to_their_items(tmp_path: Path) -> None:
    store = WeightStore()
    for i, dtype in enumerate(DTYPES.values()):
        store.add(f"odd.{i}", fill(dtype, (3,)))
    store.save(tmp_path / "w.safetensors")
    again = WeightStore.open(tmp_path / "w.safetensors")
    assert all(again[key].flags.aligned for key in again)


# The safetensors package reads what we write, and we read what it writes


def test_the_package_reads_our_files(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    store = WeightStore()
    for code, dtype in DTYPES.items():
        store.add(f"t.{code}", fill(dtype, (2, 3)))
        store.add(f"scalar.{code}", fill(dtype, ()))
        store.add(f"empty.{code}", fill(dtype, (0, 2)))
    store.save(path)
    for key, tensor in package.deserialize(path.read_bytes()):
        assert tensor["dtype"] == key.split(".")[1]
        assert tuple(tensor["shape"]) == store.shape(key)
        assert bytes(tensor["data"]) == store[key].tobytes()
    with package.safe_open(path, framework="np") as file:
        assert set(file.keys()) == set(store)
        assert same(file.get_tensor("t.F32"), store["t.F32"])
        assert file.metadata()["sha256:t.F32"] == store.hash("t.F32")


def test_we_read_the_packages_files(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    arrays = {f"t.{code}": fill(dtype, (3, 5)) for code, dtype in DTYPES.items()}
    arrays |= {"scalar": fill(np.dtype(np.float64), ()), "empty": np.zeros((2, 0), np.int8)}
    package_numpy.save_file(arrays, path, metadata={"format": "np"})
    store = WeightStore.open(path)
    assert set(store) == set(arrays)
    for key, array in arrays.items():
        assert same(store[key], array)
        assert same(store.get(store.ref(key)), array)
    store.verify_all()


# The store's own promises


def test_mapped_tensors_are_views_of_the_file_and_read_only(tmp_path: Path) -> None:
    example().save(tmp_path / "w.safetensors")
    store = WeightStore.open(tmp_path / "w.safetensors")
    array = store["layers.0.weight"]
    assert np.shares_memory(array, store["layers.0.weight"])
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 9
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_added_arrays_are_copied_and_read_only() -> None:
    source = np.zeros(3, np.float32)
    store = WeightStore()
    ref = store.add("w", source)
    source[:] = 1
    assert not store.get(ref).any()
    assert not store["w"].flags.writeable
    assert source.flags.writeable


def test_an_array_can_be_shared_instead() -> None:
    source = np.zeros(3, np.float32)
    store = WeightStore()
    store.add("w", source, copy=False)
    assert np.shares_memory(store["w"], source)
    assert not store["w"].flags.writeable
    assert source.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.arange(12, dtype=np.float32)[::2].reshape(2, 3),
        np.ma.masked_array(np.arange(6, dtype=np.float32).reshape(2, 3)),
    ],
)
def test_any_memory_layout_is_stored_as_its_values(array: Array) -> None:
    store = WeightStore()
    ref = store.add("w", array)
    plain = np.array(array, np.float32, order="C")
    assert np.array_equal(store["w"], plain)
    assert type(store["w"]) is np.ndarray
    assert ref.sha256 == sha256_of_tensor(plain)


def test_the_hash_is_of_dtype_shape_and_bytes() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    documented = hashlib.sha256(b"F32 2x3\n" + array.tobytes()).hexdigest()
    assert sha256_of_tensor(array) == documented
    others = [array.reshape(3, 2), array.view(np.int32), array + 1, array.reshape(6)]
    assert len({sha256_of_tensor(a) for a in [array, *others]}) == 5


def test_sizes_are_known_without_reading() -> None:
    store = example()
    assert store.nbytes("layers.0.scale") == 12
    assert store.nbytes() == 12 + 12 + 8
    assert store.shape("layers.0.weight") == (3, 4)
    assert store.dtype("layers.0.zero") == np.int64
    assert len(store) == 3


class Tensor:
    """Like torch's: an array with a dtype that is none of numpy's."""

    dtype = "torch.float32"


@pytest.mark.parametrize(
    ("key", "array", "what"),
    [
        ("", np.zeros(1), "is empty"),
        ("__metadata__", np.zeros(1), "reserved"),
        ("\ud800", np.zeros(1), "not valid Unicode"),
        ("größe", np.zeros(1), "not printable ASCII"),
        ("a\n", np.zeros(1), "not printable ASCII"),
        ('say "a"', np.zeros(1), "not printable ASCII"),
        ("a\\b", np.zeros(1), "not printable ASCII"),
        (3, np.zeros(1), "name 3 is not a text"),
        (None, np.zeros(1), "name None is not a text"),
        ("w", [1.0, 2.0], "is a list, not a numpy array"),
        ("w", 1.0, "is a float, not a numpy array"),
        ("w", Tensor(), r"Tensor, not a numpy array"),
        ("w", np.zeros(1, object), "dtype object"),
        ("w", np.zeros(1, "U3"), "dtype <U3"),
        ("w", np.zeros(1, ml_dtypes.int4), "dtype int4"),
        ("w", np.zeros(1, np.complex128), "dtype complex128"),
        ("w", np.zeros(1, [("a", "i4")]), "dtype"),
    ],
)
def test_what_cannot_be_stored(key: Any, array: Any, what: str) -> None:
    with pytest.raises(StoreError, match=what) as caught:
        WeightStore().add(key, array)
    assert caught.value.hint


@given(key=st.text(max_size=4))
def test_every_key_that_is_stored_can_be_referred_to(key: str) -> None:
    store = WeightStore()
    try:
        RefAttr(key, "0" * 64)
        referable = True
    except VerifyException:
        referable = False
    if referable:
        store.add(key, np.zeros(1))
        return
    with pytest.raises(StoreError):
        store.add(key, np.zeros(1))


def test_foreign_keys_are_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    package_numpy.save_file({"größe": np.ones(2, np.float32)}, path)
    store = WeightStore.open(path)
    store.save(tmp_path / "again.safetensors")
    assert same(WeightStore.open(tmp_path / "again.safetensors")["größe"], store["größe"])


def test_a_key_is_added_once() -> None:
    store = example()
    with pytest.raises(StoreError, match="already stored"):
        store.add("layers.0.zero", np.zeros(1))


def test_a_missing_key_names_close_ones() -> None:
    with pytest.raises(StoreError, match=r"no weight 'layers.0.wieght'") as caught:
        example()["layers.0.wieght"]
    assert "'layers.0.weight'" in (caught.value.hint or "")


def test_merge_takes_over_without_a_copy(tmp_path: Path) -> None:
    example().save(tmp_path / "w.safetensors")
    mapped = WeightStore.open(tmp_path / "w.safetensors")
    store = WeightStore()
    store.add("more", np.ones(2, np.float16))
    store.merge(mapped)
    store.merge(example())
    assert sorted(store) == sorted([*example(), "more"])
    assert np.shares_memory(store["layers.0.weight"], mapped["layers.0.weight"])


def test_merge_refuses_different_values_and_changes_nothing() -> None:
    store, other = WeightStore(), example()
    store.add("layers.0.zero", np.array(4, np.int64))
    with pytest.raises(StoreError, match="in both stores"):
        store.merge(other)
    assert list(store) == ["layers.0.zero"]


# References


def test_a_reference_must_fit(tmp_path: Path) -> None:
    store = example()
    ref = store.ref("layers.0.weight")
    assert same(store.get(ref), store["layers.0.weight"])
    changed = [
        (WeightRef(ref.key, "0" * 64, ref.shape, ref.dtype), "not the one"),
        (WeightRef(ref.key, ref.sha256, (4, 3), ref.dtype), "3x4 of uint8, not 4x3 of uint8"),
        (WeightRef(ref.key, ref.sha256, (3, 4), np.dtype(np.int8)), "uint8, not 3x4 of int8"),
        (WeightRef("layers.1.weight", ref.sha256, ref.shape, ref.dtype), "no weight"),
    ]
    for wrong, what in changed:
        with pytest.raises(StoreError, match=what):
            store.get(wrong)


def refusal(store: WeightStore, ref: WeightRef) -> StoreError | None:
    try:
        store.get(ref)
    except StoreError as error:
        return error
    return None


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    store = example()
    store.save(path)
    good = path.read_bytes()
    start = 8 + int.from_bytes(good[:8], "little")
    assert len(good) - start == store.nbytes()
    for at in range(start, len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        damaged = WeightStore.open(path)
        errors = [error for key in store if (error := refusal(damaged, store.ref(key)))]
        assert len(errors) == 1
        assert errors[0].place.file == str(path)
        with pytest.raises(StoreError, match="differ from their recorded hash"):
            damaged.verify_all()
        with pytest.raises(StoreError, match="differ from their recorded hash"):
            damaged.save(tmp_path / "copy.safetensors")
    assert not (tmp_path / "copy.safetensors").exists()


def test_a_changed_recorded_hash_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    store = example()
    store.save(path)
    key = "layers.0.scale"
    path.write_bytes(path.read_bytes().replace(store.hash(key).encode(), b"a" * 64))
    opened = WeightStore.open(path)
    with pytest.raises(StoreError, match="not the one"):
        opened.get(store.ref(key))
    with pytest.raises(StoreError, match="differ from their recorded hash"):
        opened.get(opened.ref(key))


def test_bytes_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.safetensors"
    example().save(path)
    store = WeightStore.open(path)
    hashed: list[Array] = []

    def counting(array: Array) -> str:
        hashed.append(array)
        return sha256_of_tensor(array)

    monkeypatch.setattr("fewbit.program.store.sha256_of_tensor", counting)
    ref = store.ref("layers.0.weight")
    assert hashed == []
    for _ in range(3):
        store.get(ref)
    store.verify_all()
    assert len(hashed) == len(store)


def test_verify_all_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example().save(tmp_path / "w.safetensors")
    store = WeightStore.open(tmp_path / "w.safetensors")
    totals: list[int | None] = []
    steps: list[int] = []

    @contextmanager
    def listening(title: str, total: int | None) -> Generator[Callable[[int], None]]:
        totals.append(total)
        yield steps.append

    monkeypatch.setattr("fewbit.program.store.progress", listening)
    store.verify_all()
    assert totals == [32]
    assert sorted(steps) == [8, 12, 12]


@pytest.mark.slow
def test_a_gigabyte_opens_fast_and_small() -> None:
    """The promise of the module's first lines, measured in a fresh process."""
    script = ROOT / "benchmarks" / "store.py"
    done = subprocess.run(
        [sys.executable, str(script), "--json"], capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stdout)
    assert figures["bytes"] >= 1 << 30
    assert figures["open_seconds"] < 1
    assert figures["peak_megabytes"] < 200


def test_computed_tensors_are_not_kept(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> np.ndarray[Any, Any]:
        calls.append(1)
        return np.arange(6, dtype=np.float32).reshape(2, 3)

    store = WeightStore()
    store.add_computed("w", (2, 3), np.dtype(np.float32), compute)
    assert store.shape("w") == (2, 3)
    assert store.nbytes() == 24
    assert not calls
    assert store.hash("w") == sha256_of_tensor(compute())
    assert store["w"] is not store["w"]
    assert not store["w"].flags.writeable
    store.save(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(WeightStore.open(tmp_path / "w.safetensors")["w"], compute())
    with pytest.raises(StoreError, match="already stored"):
        store.add_computed("w", (2, 3), np.dtype(np.float32), compute)


@pytest.mark.parametrize("is_by_rows", [False, True])
def test_blocks_of_rows_are_the_whole(is_by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewbit.program.store.BLOCK", 100)
    whole, asked = np.arange(70, dtype=np.float32).reshape(10, 7), list[tuple[int, int]]()

    def rows(start: int, stop: int) -> Array:
        asked.append((start, stop))
        return whole[start:stop]

    store = WeightStore()
    store.add_computed("w", (10, 7), whole.dtype, lambda: whole, rows if is_by_rows else None)
    blocks = list(store.blocks("w"))
    assert len(blocks) == 4
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert asked == ([(0, 3), (3, 6), (6, 9), (9, 10)] if is_by_rows else [])
    assert store.hash("w") == sha256_of_tensor(whole)
