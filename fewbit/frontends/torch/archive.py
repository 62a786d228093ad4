"""Archives of `torch.export.save`, read without running what is in them.

`torch.export.load` unpickles what the archive asks for, loads compiled libraries that lie in it,
and evaluates texts of its graph. Here the graph passes `archive_graph` first, tensors are read as
bytes, and what is pickled is read as tensors and plain values (`weights_only`) or refused. torch
then makes the program of what was read, so that no part reaches it that was not looked at.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from typing import Any

import torch
from torch._export.serde import schema, serialize
from torch._export.serde.serialize import ExportedProgramDeserializer, deserialize_scalar_type
from torch.export import ExportedProgram
from torch.export.pt2_archive import PT2ArchiveReader
from torch.export.pt2_archive import constants as names

from fewbit.base.files import PathLike
from fewbit.errors import Error, UnsupportedError
from fewbit.frontends.torch.archive_graph import check_graph

MODEL = "model"
"""The program of an archive that torch.export.load gives."""
_serialize: Any = serialize  # it is half typed, and what is needed of it private

OLD_FORMAT = "serialized_exported_program.json"


def read_archive(path: PathLike) -> ExportedProgram:
    """The program in an archive; what could run code in it is refused."""
    reader = _open(path)
    version = reader.read_string(names.ARCHIVE_VERSION_PATH)
    if version != names.ARCHIVE_VERSION_VALUE:
        raise Error(f"its version is {version[:20]!r}, and not {names.ARCHIVE_VERSION_VALUE}")
    program: schema.ExportedProgram = _serialize._bytes_to_dataclass(
        schema.ExportedProgram, reader.read_bytes(names.MODELS_FILENAME_FORMAT.format(MODEL))
    )
    check_graph(program)
    weights = _Payloads(reader, names.WEIGHTS_DIR, names.WEIGHTS_CONFIG_FILENAME_FORMAT)
    constants = _Payloads(reader, names.CONSTANTS_DIR, names.CONSTANTS_CONFIG_FILENAME_FORMAT)
    inputs = reader.read_bytes(names.SAMPLE_INPUTS_FILENAME_FORMAT.format(MODEL))
    return ExportedProgramDeserializer().deserialize(
        program,
        weights.read(),
        constants.read(),
        _unpickle(inputs, "its example inputs are", tuple) if inputs else None,
    )


def _open(path: PathLike) -> PT2ArchiveReader:
    try:
        return PT2ArchiveReader(str(path))
    except RuntimeError:
        if zipfile.is_zipfile(path) and OLD_FORMAT in zipfile.ZipFile(path).namelist():
            raise UnsupportedError(
                "the archive is in the format of torch 2.7 and older, whose parts are pickled",
                hint="load it with torch.export.load, if you trust it, and save it again",
            ) from None
        raise


class _Payloads:
    """The tensors of one kind in an archive, by their names."""

    def __init__(self, reader: PT2ArchiveReader, folder: str, config: str) -> None:
        self.reader = reader
        self.folder = folder
        self.config = config.format(MODEL)
        self._read: dict[tuple[str, torch.dtype], torch.Tensor] = {}

    def read(self) -> dict[str, Any]:
        whole = f"{self.folder}{MODEL}.pt"
        if whole in self.reader.get_file_names():
            return _unpickle(self.reader.read_bytes(whole), f"'{whole}' is", dict)
        listed: schema.PayloadConfig = _serialize._dict_to_dataclass(
            schema.PayloadConfig, json.loads(self.reader.read_string(self.config))
        )
        return {name: self._tensor(name, meta) for name, meta in listed.config.items()}

    def _tensor(self, name: str, payload: schema.PayloadMeta) -> torch.Tensor:
        path, meta = f"{self.folder}{payload.path_name}", payload.tensor_meta
        objects = (names.CUSTOM_OBJ_FILENAME_PREFIX, names.OPAQUE_OBJ_FILENAME_PREFIX)
        if payload.path_name.startswith(objects) or meta is None:
            raise UnsupportedError(
                f"'{name}' is a pickled object and no tensor: nothing is unpickled",
                hint="export a model whose constants are tensors",
            )
        if payload.use_pickle:
            return _unpickle(self.reader.read_bytes(path), f"'{name}' is", torch.Tensor)
        tensor = self._data(path, deserialize_scalar_type(meta.dtype)).as_strided(
            [_static(size) for size in meta.sizes],
            [_static(stride) for stride in meta.strides],
            _static(meta.storage_offset),
        )
        if not payload.is_param:
            return tensor
        return torch.nn.Parameter(tensor, requires_grad=meta.requires_grad)

    def _data(self, path: str, dtype: torch.dtype) -> torch.Tensor:
        """All elements of a record; tensors that share their memory share it here."""
        if (path, dtype) not in self._read:
            data = bytearray(self.reader.read_bytes(path))
            none = torch.empty(0, dtype=dtype)
            self._read[path, dtype] = torch.frombuffer(data, dtype=dtype) if data else none
        return self._read[path, dtype]


def _static(size: Any) -> int:
    if size.type != "as_int":
        raise Error("the size of a weight is not a number")
    return size.as_int


def _unpickle(data: bytes, what: str, wanted: type) -> Any:
    """Tensors and plain values of a pickle; no other class in it is looked up."""
    try:
        value = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError) as e:
        raise UnsupportedError(
            f"{what} pickled, with more in it than tensors: nothing is unpickled",
            hint="export the model with tensors as inputs and weights; to allow a class that you "
            "trust, call torch.serialization.add_safe_globals",
        ) from e
    if not isinstance(value, wanted):
        raise Error(f"{what} pickled, and gives a {type(value).__name__}")
    return value
