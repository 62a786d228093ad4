"""The safetensors format: eight bytes of header length, a JSON header, then the raw tensors.

The safetensors package copies a tensor when numpy asks for it, cannot give numpy a bfloat16, and
writes its metadata in an order that changes from run to run. So we map the file and write it
ourselves: nothing is read before it is used, and equal content gives equal bytes. The header is
checked in full before any tensor is touched; the rules are those of the package, so that each
reads what the other writes.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

import ml_dtypes
import numpy as np

from fewbit.base.files import PathLike, replacing_file
from fewbit.errors import Place, StoreError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
}
CODES: Mapping[np.dtype[Any], str] = {dtype: code for code, dtype in DTYPES.items()}

METADATA = "__metadata__"
MAX_HEADER = 100_000_000  # the package's own limit
MAX_RANK = 64  # numpy's own limit
ALIGNMENT = 64
CHUNK = 1 << 24

DAMAGED = "the file is damaged or was not fully written: make or download it again"


@dataclass(frozen=True)
class Span:
    """One tensor of a file: what it is, and which bytes of the file hold it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class TensorFile:
    """A safetensors file, mapped: its header is read and checked, its tensors are not."""

    path: Path
    spans: Mapping[str, Span]
    metadata: Mapping[str, str]
    header_sha256: str
    data: mmap.mmap

    @staticmethod
    def open(path: PathLike) -> TensorFile:
        path = Path(path)
        data = _map(path)
        return _Reader(path, data).read()

    def array(self, key: str) -> Array:
        """Return the tensor as a read-only view of the mapped file: no copy."""
        span = self.spans[key]
        if self.data.size() < span.end:
            raise StoreError(
                f"the file became shorter while it was open; {key!r} is lost",
                place=Place(file=str(self.path)),
                hint="write a changed store to a temporary file and rename it, as save() does",
            )
        if span.begin == span.end:
            return _freeze(np.empty(span.shape, span.dtype))
        return np.ndarray(span.shape, span.dtype, buffer=self.data, offset=span.begin)


@dataclass(frozen=True)
class Written:
    """What identifies a file just written: the hash of all of it, and of its header alone."""

    sha256: str
    header_sha256: str
    size: int


def write(path: PathLike, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> Written:
    """Write tensors (contiguous, of a known dtype) atomically; equal content gives equal bytes."""
    # Widest items first, as the package does: then every tensor starts at a multiple of its item.
    order = sorted(tensors, key=lambda key: (-tensors[key].itemsize, key))
    header: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))} if metadata else {}
    offset = 0
    for key in order:
        array = tensors[key]
        entry = {"dtype": CODES[array.dtype], "shape": list(array.shape)}
        header[key] = entry | {"data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise StoreError(
            f"the header of {len(order)} tensors would take {len(text)} bytes",
            place=Place(file=str(path)),
            hint=f"the format allows {MAX_HEADER}: use several stores or shorter keys",
        )
    digest = hashlib.sha256()
    with replacing_file(path) as file:
        for piece in _pieces(text, (tensors[key] for key in order)):
            digest.update(piece)
            file.write(piece)
    return Written(digest.hexdigest(), hashlib.sha256(text).hexdigest(), 8 + len(text) + offset)


def raw_bytes(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _pieces(header: bytes, arrays: Iterator[Array]) -> Iterator[bytes | memoryview]:
    yield len(header).to_bytes(8, "little")
    yield header
    for array in arrays:
        data = raw_bytes(array)
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]


def _freeze(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _map(path: Path) -> mmap.mmap:
    place = Place(file=str(path))
    try:
        # Ask before opening: opening a pipe would wait for a writer.
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            hint = "give the .safetensors file, or load the whole folder as a program"
            raise StoreError("this is a folder, not a weight store", place=place, hint=hint)
        if not stat.S_ISREG(mode):
            hint = "give a .safetensors file"
            raise StoreError("this is not a regular file", place=place, hint=hint)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                what = "the file is empty" if size == 0 else f"the file has only {size} bytes"
                raise StoreError(f"{what}: not a weight store", place=place, hint=DAMAGED)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        hint = "check the path; a store is written by WeightStore.save()"
        raise StoreError("there is no such file", place=place, hint=hint) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "check the path and its permissions"
        raise StoreError(f"cannot open this file: {reason}", place=place, hint=hint) from error


class _Reader:
    """Reads and checks one header. Every check that fails ends in `_refuse`."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data

    def read(self) -> TensorFile:
        raw = self._header_bytes()
        base = 8 + len(raw)
        header = self._parse(raw)
        metadata = self._metadata(header.pop(METADATA, {}))
        spans = {key: self._span(key, entry, base) for key, entry in header.items()}
        self._check_layout(spans, base)
        return TensorFile(self.path, spans, metadata, hashlib.sha256(raw).hexdigest(), self.data)

    def _refuse(self, what: str, hint: str = DAMAGED) -> NoReturn:
        what = what if len(what) <= 300 else f"{what[:297]}..."
        raise StoreError(what, place=Place(file=str(self.path)), hint=hint)

    def _header_bytes(self) -> bytes:
        length, room = int.from_bytes(self.data[:8], "little"), len(self.data) - 8
        if not 2 <= length <= MAX_HEADER or self.data[8:9] not in (b"", b"{"):
            self._refuse("this is not a safetensors file", "give a .safetensors file")
        if length > room:
            self._refuse(f"the header should take {length} bytes but only {room} are there")
        return self.data[8 : 8 + length]

    def _parse(self, raw: bytes) -> dict[str, object]:
        try:
            header = json.loads(raw.decode("utf-8"), object_pairs_hook=self._unique)
        except (ValueError, RecursionError) as error:
            self._refuse(f"the header is not valid JSON: {error}")
        if not isinstance(header, dict):
            self._refuse("the header is not a JSON object")
        return cast(dict[str, object], header)

    def _unique(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries: dict[str, object] = {}
        for key, value in pairs:
            if key in entries:
                self._refuse(f"the header names {key!r} twice")
            entries[key] = value
        return entries

    def _metadata(self, metadata: object) -> dict[str, str]:
        if not isinstance(metadata, dict):
            self._refuse(f"the header's {METADATA} is not an object")
        entries = cast(dict[str, object], metadata)
        for name, value in entries.items():
            if not isinstance(value, str):
                self._refuse(f"the header's {METADATA} entry {name!r} is not a string")
        return cast(dict[str, str], entries)

    def _span(self, key: str, entry: object, base: int) -> Span:
        if reason := bad_key(key):
            self._refuse(f"the tensor name {key!r} {reason}")
        if not isinstance(entry, dict):
            self._refuse(f"the header's entry of {key!r} is not an object")
        fields = cast(dict[str, object], entry)
        if set(fields) != {"dtype", "shape", "data_offsets"}:
            self._refuse(f"{key!r} needs dtype, shape and data_offsets, and has {sorted(fields)}")
        dtype = self._dtype(key, fields["dtype"])
        shape = self._naturals(key, "shape", fields["shape"])
        offsets = self._naturals(key, "data_offsets", fields["data_offsets"])
        if len(offsets) != 2 or offsets[0] > offsets[1]:
            self._refuse(f"{key!r} has data_offsets {list(offsets)}, not a begin and an end")
        if len(shape) > MAX_RANK or math.prod(d or 1 for d in shape) * dtype.itemsize > sys.maxsize:
            self._refuse(f"{key!r} has a shape too large for memory: {_by(shape)}")
        begin, end = offsets
        needed = math.prod(shape) * dtype.itemsize
        if end - begin != needed:
            self._refuse(
                f"{key!r} is {_by(shape)} of {dtype}, {needed} bytes, but its data_offsets "
                f"span {end - begin}"
            )
        return Span(dtype, shape, base + begin, base + end)

    def _dtype(self, key: str, code: object) -> np.dtype[Any]:
        dtype = DTYPES.get(code) if isinstance(code, str) else None
        if dtype is None:
            self._refuse(
                f"{key!r} has the dtype {code!r}, which fewbit does not know",
                f"known dtypes: {', '.join(DTYPES)}; sub-byte values are stored packed in U8",
            )
        return dtype

    def _naturals(self, key: str, field: str, value: object) -> tuple[int, ...]:
        numbers = cast(list[object], value) if isinstance(value, list) else None
        if numbers is None or not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
            self._refuse(f"{key!r} has a {field} that is not a list of natural numbers")
        return tuple(cast(list[int], numbers))

    def _check_layout(self, spans: Mapping[str, Span], base: int) -> None:
        """Check that the tensors follow one another and fill the file exactly."""
        position, before = base, ""
        for key, span in sorted(spans.items(), key=lambda item: (item[1].begin, item[1].end)):
            if span.end > len(self.data):
                short = span.end - len(self.data)
                self._refuse(f"the file is cut short: {key!r} ends {short} bytes after its end")
            if span.begin < position:
                self._refuse(f"{key!r} overlaps {before!r}")
            if span.begin > position:
                self._refuse(f"no tensor owns the {span.begin - position} bytes before {key!r}")
            position, before = span.end, key
        if position < len(self.data):
            self._refuse(f"no tensor owns the last {len(self.data) - position} bytes")


def bad_key(key: str) -> str | None:
    """Return why a text cannot name a tensor; None when it can."""
    if not key:
        return "is empty"
    if key == METADATA:
        return "is reserved by the format"
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return None


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
