"""OpenVINO: in float32, or in 8 bits by NNCF, with scales of activations from samples.

A model with a state keeps it inside, as OpenVINO's own language models do. For these there is a
second way to 8 bits, of weights alone: activations are then quantized at run time.
"""
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.bench.case import Array, Case
from fewbit.bench.peers.onnx_model import PACKAGES, onnx_model, onnx_state
from fewbit.bench.peers.peer import Peer, Session
from fewbit.errors import UnsupportedError

if TYPE_CHECKING:
    from openvino import Model

FLOAT, STATIC, WEIGHTS = "float32", "int8, static", "int8 weights"


class OpenVino(Peer):
    """OpenVINO on the CPU."""

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("openvino", *PACKAGES, *(("nncf",) if quantized else ()))

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return (STATIC, WEIGHTS) if quantized else (FLOAT,)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        import openvino as ov

        model = ov.Core().read_model(onnx_model(case))
        state = onnx_state(case)
        if variant == STATIC:
            model = _quantize(model, case)
        if variant == WEIGHTS:
            if not state:
                raise UnsupportedError("weights alone are quantized where a model has a state")
            model = _compress_weights(model)
        if state:
            _keep_inside(model, len(state))
        # Floats stay what they are: by itself it would store them in 16 bits.
        ov.save_model(model, folder / "model.xml", compress_to_fp16=False)

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        import openvino as ov

        config: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }  # fmt: skip
        compiled = ov.Core().compile_model(folder / "model.xml", "CPU", config)
        request = compiled.create_infer_request()
        for i, array in enumerate(case.inputs):
            request.set_input_tensor(i, ov.Tensor(array))
        kept = {state.name: state for state in request.query_state()}
        for i, array in enumerate(onnx_state(case)):
            kept[f"kept{i}.new{i}"].state = ov.Tensor(array)
        count = len(compiled.outputs)

        def outputs() -> list[Array]:
            return [np.array(request.get_output_tensor(i).data) for i in range(count)]

        return Session(request.infer, outputs)


def _quantize(model: Model, case: Case) -> Model:
    import nncf

    samples = case.samples
    kind = nncf.ModelType.TRANSFORMER if _has_attention(model) else None
    state = onnx_state(case)

    def named(sample: Sequence[Array]) -> dict[int, Array]:
        return dict(enumerate([*sample, *state]))

    data = nncf.Dataset(samples, named)
    return nncf.quantize(model, data, subset_size=len(samples), model_type=kind)


def _compress_weights(model: Model) -> Model:
    import nncf

    return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)


def _keep_inside(model: Model, count: int) -> None:
    """Turn the last inputs and outputs into variables, which are named after both."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    for i in range(count):
        model.inputs[i - count].get_tensor().set_names({f"kept{i}."})
        model.outputs[i - count].get_tensor().set_names({f"new{i}"})
    pairs = {f"kept{i}.": f"new{i}" for i in range(count)}
    apply_make_stateful_transformation(model, pairs)


def _has_attention(model: Model) -> bool:
    """Return whether weights of a softmax multiply a matrix."""
    return any(
        op.get_type_name() == "ScaledDotProductAttention"
        or (
            op.get_type_name() == "Softmax"
            and any(
                i.get_node().get_type_name() == "MatMul" for i in op.output(0).get_target_inputs()
            )
        )
        for op in model.get_ops()
    )
