"""Reads a model file, and the files beside it that hold its tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from fewbit.base.files import inside
from fewbit.errors import Error, Place, UnsupportedError, UsageError
from fewbit.frontends.onnx.validate import check_texts, schema_of, tensors_of

OLDEST = 7
"""Before opset 7, broadcasting was written out by axes."""


def load_model(path: Path) -> ModelProto:
    place = Place(file=str(path))
    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    try:
        model: ModelProto = cast(Any, onnx).load(str(path), load_external_data=False)
    except (DecodeError, ValueError, TypeError) as error:
        raise Error(
            f"this is not an ONNX model: {str(error).partition(chr(10))[0]}",
            place=place,
            hint="is the file whole?",
        ) from None
    if not model.ir_version or not model.HasField("graph") or not model.opset_import:
        raise Error("this is not an ONNX model: it has no graph", place=place)
    check_texts(model)
    check_opsets(model)
    for tensor in tensors_of(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            _read_external(tensor, path.parent, place)
    return model


def check_opsets(model: ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain not in ("", "ai.onnx"):
            continue
        if opset.version > newest:
            raise UnsupportedError(
                f"the model is of opset {opset.version}, and onnx {onnx.__version__} knows "
                f"{newest} and older",
                hint="export it for an older opset, or install a newer onnx",
            )
        if opset.version < OLDEST and _has_changed(model, opset.version):
            raise UnsupportedError(
                f"the model is of opset {opset.version}, and {OLDEST} is the oldest that is read",
                hint="convert it: onnx.version_converter.convert_version(model, 17)",
            )


def _has_changed(model: ModelProto, version: int) -> bool:
    """Return whether an op of the graph means another thing since the oldest opset that is read."""
    return any(
        _since(node.op_type, version) != _since(node.op_type, OLDEST)
        for node in model.graph.node
        if node.domain in ("", "ai.onnx")
    )


def _since(op: str, version: int) -> int | None:
    schema = schema_of(op, "", version)
    return None if schema is None else schema.since_version


def _read_external(tensor: TensorProto, folder: Path, place: Place) -> None:
    info = {entry.key: entry.value for entry in tensor.external_data}
    name = info.get("location", "").removeprefix("./")
    try:
        file = inside(folder, name)
    except Error as error:
        raise Error(
            f"the data of '{tensor.name}' cannot be read: "
            + error.what.removeprefix("cannot read this: "),
            place=place,
            hint=f"its file '{name}' must lie in the folder of the model",
        ) from None
    size = file.stat().st_size
    offset = _number(info.get("offset", "0"), tensor, place)
    length = _number(info["length"], tensor, place) if "length" in info else size - offset
    if offset < 0 or length < 0 or offset + length > size:
        raise Error(
            f"the data of '{tensor.name}' is bytes {offset} to {offset + length} of '{name}', "
            f"which has {size}",
            place=place,
            hint="is the file whole, and the one that was written with the model?",
        )
    with file.open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _number(text: str, tensor: TensorProto, place: Place) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Error(
            f"the data of '{tensor.name}' is at {text[:40]!r} of its file, which is no place",
            place=place,
        )
    return int(text)
