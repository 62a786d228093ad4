"""Weights by reference: tensors in a safetensors file, mapped into memory and checked by hash.

A program's text names a weight by key and hash; the numbers are here. Opening a store reads its
header only. A hash covers dtype, shape and bytes of one tensor and is kept in the file's header;
the bytes are compared with it once, when the tensor is first reached through a reference. The
header thus vouches for every tensor, and the hash of the header for the whole store. Arrays are
read-only: a stored tensor never changes under the references to it.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fewbit.base.files import PathLike
from fewbit.base.progress import progress
from fewbit.base.spool import Spool, is_mapped
from fewbit.errors import Place, StoreError
from fewbit.program.tensor_file import (
    CODES,
    DTYPES,
    Array,
    TensorFile,
    Written,
    bad_key,
    raw_bytes,
    write,
)

if TYPE_CHECKING:
    from fewbit.program.derived import Derivation

BLOCK = 32 << 20
"""Bytes of a tensor that are read at once, where some of it is enough."""
FORMAT_KEY = "fewbit.program.store"
FORMAT = "1"
HASH_PREFIX = "sha256:"
_REFERABLE = re.compile(r"[ !#-\[\]-~]+")


@dataclass(frozen=True)
class WeightRef:
    """What a program knows about one weight: enough to find it and to notice any change."""

    key: str
    sha256: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class _Tensor:
    """One tensor of a store. `sha256` is what is recorded; `checked` says that the bytes agree."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    read: Callable[[], Array]
    sha256: str | None
    checked: bool
    path: Path | None
    rows: Callable[[int, int], Array] | None = None
    """Reads some rows alone, where that is less work than to read all."""

    @property
    def place(self) -> Place:
        return Place(file=str(self.path) if self.path else None)


def sha256_of_tensor(array: Array) -> str:
    """Return the hash of one tensor: dtype and shape as one line of text, then the raw bytes."""
    array = _as_stored(array)
    return _sha256(array.dtype, array.shape, [array])


def _sha256(dtype: np.dtype[Any], shape: tuple[int, ...], parts: Iterable[Array]) -> str:
    line = f"{CODES[dtype]} {'x'.join(map(str, shape))}\n"
    digest = hashlib.sha256(line.encode("ascii"))
    for part in parts:
        digest.update(raw_bytes(part))
    return digest.hexdigest()


class WeightStore:
    """Named read-only tensors, in memory or mapped from files."""

    def __init__(self) -> None:
        self._tensors: dict[str, _Tensor] = {}
        self._derivations: dict[str, Derivation] = {}
        self.spool = Spool()
        """Where passes keep what they make of weights."""
        self.path: Path | None = None
        """The file this store was opened from."""
        self.header_sha256: str | None = None
        """The hash of that file's header, and thereby of everything the store held then."""

    @staticmethod
    def open(path: PathLike) -> WeightStore:
        """Map a safetensors file. Its header is checked now, each tensor when it is first used."""
        file = TensorFile.open(path)
        hashes = _recorded_hashes(file)
        store = WeightStore()
        store.path = file.path
        store.header_sha256 = file.header_sha256
        for key, span in file.spans.items():
            read = partial(file.array, key)
            store._tensors[key] = _Tensor(
                span.dtype, span.shape, read, hashes.get(key), False, file.path
            )
        return store

    def add(
        self, key: str, array: Array, *, copy: bool = True, spool: Spool | None = None
    ) -> WeightRef:
        """Add a tensor; with a spool, a large one is kept in its file.

        `copy=False` keeps the caller's memory, which must then never change.
        """
        _check_addable(key, array)
        if array.dtype.newbyteorder("<") not in CODES:
            hint = f"known dtypes: {', '.join(DTYPES)}; pack sub-byte values into uint8"
            raise StoreError(f"the weight {key!r} has the dtype {array.dtype}", hint=hint)
        self._check_new(key)
        if spool is not None:
            array = spool.keep(array)
            copy = copy and not is_mapped(array)
        kept = _as_stored(array, copy)
        tensor = _Tensor(kept.dtype, kept.shape, lambda: kept, sha256_of_tensor(kept), True, None)
        self._tensors[key] = tensor
        return self.ref(key)

    def add_computed(
        self,
        key: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        compute: Callable[[], Array],
        rows: Callable[[int, int], Array] | None = None,
    ) -> None:
        """Add a tensor that is computed whenever it is read, and not kept; always the same one.

        `rows` computes those of a range alone.
        """
        _check_addable(key, np.empty(0, dtype))
        self._check_new(key)
        read = partial(_compute, compute)
        self._tensors[key] = _Tensor(
            dtype, shape, read, None, True, None, rows and partial(_compute, rows)
        )

    def note_derivation(self, key: str, derivation: Derivation) -> None:
        """Note how a tensor was computed from others."""
        self._derivations[key] = derivation

    def derivation(self, key: str) -> Derivation | None:
        """Return how a tensor was computed, if that was noted."""
        return self._derivations.get(key)

    def forget_derivations(self) -> None:
        """Take all tensors for given ones from now on."""
        self._derivations.clear()

    def __getitem__(self, key: str) -> Array:
        """Return the tensor, read-only; a view of the mapped file when it comes from one."""
        return self._tensor(key).read()

    def blocks(self, key: str) -> Iterator[Array]:
        """Yield a tensor as a few rows at a time, in order; a small one as a whole."""
        tensor = self._tensor(key)
        size = int(np.prod(tensor.shape, dtype=np.int64)) * tensor.dtype.itemsize
        if size <= BLOCK or len(tensor.shape) < 2:
            yield tensor.read()
            return
        count = max(1, BLOCK * tensor.shape[0] // size)
        rows = tensor.rows or _rows_of(tensor.read())
        for start in range(0, tensor.shape[0], count):
            yield rows(start, min(start + count, tensor.shape[0]))

    def __contains__(self, key: object) -> bool:
        return key in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def keys(self) -> KeysView[str]:
        return self._tensors.keys()

    def shape(self, key: str) -> tuple[int, ...]:
        return self._tensor(key).shape

    def dtype(self, key: str) -> np.dtype[Any]:
        return self._tensor(key).dtype

    def nbytes(self, key: str | None = None) -> int:
        """Return the bytes that one tensor takes, or all of them, without reading any."""
        tensors = self._tensors.values() if key is None else [self._tensor(key)]
        return sum(int(np.prod(t.shape, dtype=np.int64)) * t.dtype.itemsize for t in tensors)

    def hash(self, key: str) -> str:
        """Return the recorded hash; computed from the bytes for a file that has none."""
        return self._recorded_hash(key, self._tensor(key))

    def ref(self, key: str) -> WeightRef:
        return WeightRef(key, self.hash(key), self.shape(key), self.dtype(key))

    def get(self, ref: WeightRef) -> Array:
        """Return the tensor that a reference means, checked against it."""
        self.check(ref)
        return self[ref.key]

    def check(self, ref: WeightRef) -> None:
        """Refuse a tensor that is not the one referred to, or whose bytes have changed."""
        tensor = self._tensor(ref.key)
        have, want = (tensor.shape, tensor.dtype), (tuple(ref.shape), np.dtype(ref.dtype))
        if have != want:
            what = f"the weight {ref.key!r} is {_describe(*have)}, not {_describe(*want)}"
            raise StoreError(what, place=tensor.place, hint=_OTHER_STORE)
        if self._recorded_hash(ref.key, tensor) != ref.sha256:
            what = f"the weight {ref.key!r} is not the one that the program was made with"
            raise StoreError(what, place=tensor.place, hint=_OTHER_STORE)
        self._check_bytes(ref.key, tensor)

    def verify_all(self) -> None:
        """Compare every tensor with its recorded hash."""
        with progress("Checking weights (bytes)", self.nbytes()) as step:
            for key, tensor in self._tensors.items():
                self._check_bytes(key, tensor)
                step(self.nbytes(key))

    def merge(self, other: WeightStore) -> None:
        """Take over the tensors of another store, without a copy; equal ones may be in both."""
        for key, tensor in other._tensors.items():
            mine = self._tensors.get(key)
            if mine is not None and self.hash(key) != other.hash(key):
                what = f"the weight {key!r} is in both stores, with different values"
                raise StoreError(what, place=tensor.place, hint="rename one of them")
        self._tensors = {**other._tensors, **self._tensors}

    def select(self, keys: Mapping[str, str]) -> WeightStore:
        """Return a store of some of the tensors, without a copy: the old key, by the new one."""
        chosen = WeightStore()
        chosen._tensors = {new: self._tensor(old) for new, old in keys.items()}
        return chosen

    def save(self, path: PathLike) -> Written:
        """Write everything to one safetensors file, whole or not at all.

        Equal content gives equal bytes. What is mapped from a damaged file is refused, not copied.
        """
        self.verify_all()
        hashes = {f"{HASH_PREFIX}{key}": self.hash(key) for key in self._tensors}
        arrays = {key: self[key] for key in self._tensors}
        return write(path, arrays, {FORMAT_KEY: FORMAT, **hashes})

    def _check_new(self, key: str) -> None:
        if key in self._tensors:
            hint = "a stored weight never changes: use another key"
            raise StoreError(f"the weight {key!r} is already stored", hint=hint)

    def _tensor(self, key: str) -> _Tensor:
        tensor = self._tensors.get(key)
        if tensor is not None:
            return tensor
        close = difflib.get_close_matches(key, self._tensors, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else _OTHER_STORE
        place = Place(file=str(self.path) if self.path else None)
        raise StoreError(f"the store has no weight {key!r}", place=place, hint=hint)

    def _recorded_hash(self, key: str, tensor: _Tensor) -> str:
        if tensor.sha256 is None:
            tensor.sha256 = _sha256(tensor.dtype, tensor.shape, self.blocks(key))
            tensor.checked = True
        return tensor.sha256

    def _check_bytes(self, key: str, tensor: _Tensor) -> None:
        if tensor.checked:
            return
        if sha256_of_tensor(tensor.read()) != self._recorded_hash(key, tensor):
            raise StoreError(
                f"the bytes of the weight {key!r} differ from their recorded hash",
                place=tensor.place,
                hint="the file is damaged or was edited: make or download it again",
            )
        tensor.checked = True


_OTHER_STORE = "this is a store of another program, or of another version of it"


def _check_addable(key: object, array: object) -> None:
    """Refuse a key that a reference in a program's text cannot name."""
    reason = "is not a text" if not isinstance(key, str) else bad_key(key)
    if reason is None and not _REFERABLE.fullmatch(cast(str, key)):
        reason = "is not printable ASCII without quotes and backslashes"
    if reason is not None:
        hint = "use the name of the parameter, such as 'layers.0.weight'"
        raise StoreError(f"the weight name {key!r} {reason}", hint=hint)
    if not isinstance(array, np.ndarray | np.generic):
        kind = f"{type(array).__module__}.{type(array).__qualname__}".removeprefix("builtins.")
        hint = "convert it: numpy.asarray(values, dtype), or tensor.numpy() for torch"
        raise StoreError(f"the weight {key!r} is a {kind}, not a numpy array", hint=hint)


def _as_stored(array: Array, copy: bool = False) -> Array:
    """Return the array contiguous, little-endian and read-only; copied only where needed."""
    dtype = array.dtype.newbyteorder("<")
    kept = np.array(array, dtype=dtype, order="C", copy=copy or None).view(np.ndarray)
    kept.flags.writeable = False
    return kept


def _rows_of(whole: Array) -> Callable[[int, int], Array]:
    return lambda start, stop: whole[start:stop]


def _compute(compute: Callable[..., Array], *rows: int) -> Array:
    return _as_stored(compute(*rows))


def _recorded_hashes(file: TensorFile) -> dict[str, str]:
    """Return the hashes in the header of a store of ours; other safetensors files have none."""
    if FORMAT_KEY not in file.metadata:
        return {}
    place = Place(file=str(file.path))
    if (version := file.metadata[FORMAT_KEY]) != FORMAT:
        what = f"the store has version {version!r}; this fewbit reads version {FORMAT}"
        raise StoreError(what, place=place, hint="update fewbit")
    hashes = {
        name.removeprefix(HASH_PREFIX): value
        for name, value in file.metadata.items()
        if name.startswith(HASH_PREFIX)
    }
    if odd := next(iter(hashes.keys() ^ file.spans.keys()), None):
        what = f"{odd!r} has a hash without a tensor, or a tensor without a hash"
        raise StoreError(what, place=place, hint="the header was edited: make the store again")
    for key, value in hashes.items():
        if not re.fullmatch("[0-9a-f]{64}", value):
            what = f"the recorded hash of {key!r} is not a sha256"
            raise StoreError(what, place=place, hint="the header was edited: make the store again")
    return hashes


def _describe(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return f"{'x'.join(map(str, shape)) or 'a scalar'} of {dtype}"
