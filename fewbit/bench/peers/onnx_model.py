"""The model as an ONNX file, which several tools read; made once for a case.

ONNX has no state: where the model has one, it is among the file's inputs and outputs, behind the
model's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from fewbit.bench.case import Array, Case, read_arrays, write_arrays

PACKAGES = ("onnx", "onnxscript")


def onnx_model(case: Case) -> Path:
    import torch

    from fewbit.bench.peers.explicit_state import ExplicitState, state_of

    path = case.folder / "onnx" / "model.onnx"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    model, given = case.module(), case.tensors()
    state = state_of(model, given)
    if state:
        model, given = ExplicitState(model, tuple(state)), (*given, *state.values())
    write_arrays(path.with_name("state.npz"), [tensor.numpy() for tensor in state.values()])
    cast(Any, torch.onnx).export(model, given, str(path), dynamo=True, verbose=False)
    return path


def onnx_state(case: Case) -> list[Array]:
    """Return the model's state before the call that is measured; nothing where it has none."""
    return read_arrays(onnx_model(case).with_name("state.npz"))
