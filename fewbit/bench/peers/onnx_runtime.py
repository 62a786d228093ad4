"""onnxruntime: in float32, or in 8 bits by its own quantizers.

Both of these are tried: scales of activations from samples (QDQ form, scales of weights by channel)
and scales found at run time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fewbit.bench.case import Array, Case
from fewbit.bench.peers.onnx_model import PACKAGES, onnx_model, onnx_state
from fewbit.bench.peers.peer import Peer, Session

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime.quantization import CalibrationDataReader

FLOAT, STATIC, DYNAMIC = "float32", "int8, static", "int8, dynamic"


class OnnxRuntime(Peer):
    """onnxruntime on the CPU."""

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("onnxruntime", *PACKAGES)

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return (STATIC, DYNAMIC) if quantized else (FLOAT,)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        from onnxruntime import quantization as q

        source, destination = onnx_model(case), str(folder / "model.onnx")
        if variant == FLOAT:
            import onnx

            files = cast(Any, onnx)  # paths have no types there
            files.save(files.load(source), destination)
            return
        ready = case.place("onnx") / "ready.onnx"
        if not ready.exists():
            q.shape_inference.quant_pre_process(str(source), str(ready))
        if variant == DYNAMIC:
            q.quantize_dynamic(str(ready), destination, weight_type=q.QuantType.QInt8)
            return
        q.quantize_static(
            str(ready),
            destination,
            _samples(case, str(ready)),
            quant_format=q.QuantFormat.QDQ,
            per_channel=True,
            activation_type=q.QuantType.QUInt8,
            weight_type=q.QuantType.QInt8,
        )

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = ort.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        state = onnx_state(case)
        for array, spec in zip([*case.inputs, *state], session.get_inputs(), strict=True):
            binding.bind_cpu_input(spec.name, array)
        for spec in session.get_outputs():
            binding.bind_output(spec.name, "cpu")

        def run() -> None:
            session.run_with_iobinding(binding)

        own = len(session.get_outputs()) - len(state)
        return Session(run, lambda: binding.copy_outputs_to_cpu()[:own])


def _samples(case: Case, path: str) -> CalibrationDataReader:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader

    model: ModelProto = cast(Any, onnx).load(path, load_external_data=False)
    names = [given.name for given in model.graph.input]

    class Samples(CalibrationDataReader):
        def __init__(self) -> None:
            self.remaining = iter(case.samples)
            self.state = onnx_state(case)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self.remaining, None)
            if sample is None:
                return None
            return dict(zip(names, [*sample, *self.state], strict=True))

    return Samples()
