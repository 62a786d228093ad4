"""The model as an ONNX file, which several tools read; made once for a case."""
# pyright: basic

from __future__ import annotations

from pathlib import Path

from fewbit.bench.case import Case

PACKAGES = ("onnx", "onnxscript")


def onnx_model(case: Case) -> Path:
    import torch

    path = case.folder / "onnx" / "model.onnx"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        torch.onnx.export(case.module(), case.tensors(), str(path), dynamo=True, verbose=False)
    return path
