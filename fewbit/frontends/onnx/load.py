# pyright: basic
"""Reads a model file, and the files beside it that hold its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, external_data_helper

from fewbit.errors import Error, Place, UnsupportedError, UsageError
from fewbit.files import inside

OLDEST = 7
"""Before opset 7, broadcasting was written out by axes."""


def load_model(path: Path) -> ModelProto:
    place = Place(file=str(path))
    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, TypeError) as error:
        raise Error(
            f"this is not an ONNX model: {str(error).partition(chr(10))[0]}",
            place=place,
            hint="is the file whole?",
        ) from None
    if not model.ir_version or not model.HasField("graph") or not model.opset_import:
        raise Error("this is not an ONNX model: it has no graph", place=place)
    check_opsets(model)
    for tensor in _tensors(model.graph):
        if external_data_helper.uses_external_data(tensor):
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
        if opset.version < OLDEST:
            raise UnsupportedError(
                f"the model is of opset {opset.version}, and {OLDEST} is the oldest that is read",
                hint="convert it: onnx.version_converter.convert_version(model, 17)",
            )


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == AttributeProto.GRAPH:
                yield from _tensors(attribute.g)


def _read_external(tensor: TensorProto, folder: Path, place: Place) -> None:
    info = external_data_helper.ExternalDataInfo(tensor)
    name = info.location.removeprefix("./")
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
    offset = info.offset or 0
    length = size - offset if info.length is None else info.length
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
