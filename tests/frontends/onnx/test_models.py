"""Whole models: the zoo by way of ONNX, and models from other packages where these are installed."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import fewbit
from fewbit.errors import Error
from fewbit.frontends import import_model
from fewbit.frontends.onnx import import_onnx
from fewbit.ir.layers import layers
from fewbit.models.registry import create, find_entry
from tests.frontends.onnx.graphs import onnx


def exported(name: str, folder: Path) -> tuple[Any, tuple[Any, ...], Path]:
    """A zoo model, inputs, and the file that torch writes of it."""
    module, inputs = create(name).eval(), tuple(find_entry(name).example_inputs(1))
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cast(Any, torch.onnx).export(
            module, inputs, str(path), dynamo=False, opset_version=17,
            do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
        )  # fmt: skip
    return module, inputs, path


@pytest.mark.parametrize(
    "name",
    [
        "lenet",
        pytest.param("ds-cnn", marks=pytest.mark.slow),
        pytest.param("resnet8", marks=pytest.mark.slow),
        pytest.param("mobilenet-v2", marks=pytest.mark.slow),
    ],
)
def test_same_integers_as_from_torch(name: str, tmp_path: Path) -> None:
    module, inputs, path = exported(name, tmp_path)
    through_onnx, from_torch = import_model(path), import_model(module, inputs)
    assert list(layers(through_onnx.module)) == list(layers(from_torch.module))
    recipe = "w8a8" if name != "lenet" else "w8a8,fc1=w4a8,re:conv.*=w6a8"
    ours, theirs = (fewbit.quantize(program, recipe) for program in (through_onnx, from_torch))
    for layer in layers(theirs.module):
        for key in (f"{layer}.weight", f"{layer}.weight.scale"):
            np.testing.assert_array_equal(ours.store[key], theirs.store[key])
    x = [tensor.numpy() for tensor in inputs]
    for a, b in zip(ours.run(*x), theirs.run(*x), strict=True):
        np.testing.assert_array_equal(a, b)


SILERO = importlib.util.find_spec("silero_vad")
SHAPES = {"state": (2, 1, 128), "h": (1, 1, 128), "c": (1, 1, 128)}
FOLDER = Path(SILERO.origin).parent / "data" if SILERO and SILERO.origin else Path()


@pytest.mark.skipif(SILERO is None, reason="silero-vad is not installed")
@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("*.onnx")) if SILERO else [])
def test_silero_vad(file: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(FOLDER / file), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {}
    for port in session.get_inputs():
        if port.name == "sr":
            given[port.name] = np.array(16000)
            continue
        dtype = np.float16 if "float16" in port.type else np.float32
        shape = SHAPES.get(port.name, (1, 576))
        given[port.name] = (0.3 * rng.standard_normal(shape)).astype(dtype)
    constants = {name: given[name] for name in given if name == "sr"}
    shapes = {name: array.shape for name, array in given.items() if name not in constants}
    program = import_onnx(FOLDER / file, shapes, constants)
    results = program.run(*(given[name] for name in shapes))
    for ours, theirs in zip(results, session.run(None, given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


OTHERS = {
    "magika/models/standard_v3_3/model.onnx": (1, 2048),
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": (1, 3, 48, 192),
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": (1, 3, 64, 64),
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": (1, 3, 48, 64),
    "basic_pitch/saved_models/icassp_2022/nmp.onnx": (1, 43844, 1),
}
"""Files in wheels, and the shape of the input."""


@pytest.mark.slow
@pytest.mark.parametrize("file", OTHERS)
def test_models_from_wheels(file: str) -> None:
    """Wheels that are there without what they depend on will do."""
    runtime = pytest.importorskip("onnxruntime")
    package, _, inside = file.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    path = Path(spec.origin).parent / inside
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    rng = np.random.default_rng(0)
    x = 0.3 * rng.standard_normal(OTHERS[file]).astype(np.float32)
    if "int32" in port.type:
        x = rng.integers(0, 256, OTHERS[file], np.int32)
    results = import_onnx(path, [x.shape]).run(x)
    for ours, theirs in zip(results, session.run(None, {port.name: x}), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_onnxruntime_agrees_on_its_own_quantization(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        quantize_static,
    )

    _, _, path = exported("lenet", tmp_path)
    name = onnx.load(str(path)).graph.input[0].name

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            self.data = iter(
                [{name: rng.standard_normal((1, 1, 28, 28)).astype(np.float32)} for _ in range(4)]
            )

        def get_next(self) -> Any:
            return next(self.data, None)

    for kind in (QuantFormat.QDQ, QuantFormat.QOperator):
        file = tmp_path / f"{kind}.onnx"
        quantize_static(str(path), str(file), Reader(), quant_format=kind)
        program = import_model(file)
        assert program.recipe is not None
        assert len(layers(program.module)) == 5
        assert program.recipe.count("a8-") == 5
        x = np.random.default_rng(5).standard_normal((1, 1, 28, 28)).astype(np.float32)
        session = InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (wanted,) = session.run(None, {name: x})
        np.testing.assert_allclose(program.run(x)[0], np.asarray(wanted), rtol=1e-4, atol=1e-4)
        with pytest.raises(Error, match="quantized already"):
            fewbit.quantize(program, "w8a8")
