"""An ONNX file as a case: what onnxruntime makes of it, and of its fake quantization."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tests.strangers.check import Case, Outputs
from tests.strangers.onnx_fake_quantization import fake_quantize
from tests.strangers.stranger import OnnxCase


def make_case(built: OnnxCase) -> Case:
    """Run a file in onnxruntime as it is and with its layers rounded to 8 bits."""
    onnx: Any = import_module("onnx")
    model = onnx.load(str(built.path))
    rounded, weights = fake_quantize(model)
    return Case(
        load=lambda: _load(built),
        runs=built.runs,
        expected=[_run(model, run) for run in built.runs],
        fake=[_run(rounded, run) for run in built.runs],
        weights=weights,
    )


def _load(built: OnnxCase) -> Any:
    import fewbit

    return fewbit.import_model(
        built.path, input_shapes=built.input_shapes, constants=built.constants
    )


def _run(model: Any, inputs: Mapping[str, np.ndarray]) -> Outputs:
    ort: Any = import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # Its fusions believe the sizes that a file notes beside dynamic ones.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(inputs))
