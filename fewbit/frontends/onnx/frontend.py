"""ONNX: files, and models that are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewbit.frontends.frontend import Frontend, Given
from fewbit.program.program import Program


class Onnx(Frontend):
    takes_sizes = True
    takes_constants = True

    def takes(self, model: Any) -> bool:
        return type(model).__name__ == "ModelProto"

    def import_object(self, model: Any, given: Given) -> Program:
        from fewbit.frontends.onnx import import_onnx

        return import_onnx(model, given.input_shapes, given.constants)

    def reads(self, path: Path) -> bool:
        return path.suffix == ".onnx"

    def import_file(self, path: Path, given: Given) -> Program:
        return self.import_object(path, given)
