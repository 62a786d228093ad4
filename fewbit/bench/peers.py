"""Other tools that run the same model: each gives a function without arguments that runs it once.

A tool that is not installed, or that fails on a model, raises an `UnavailableError`; a benchmark
shows that in place of a number.
"""
# pyright: basic

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], Any]


class UnavailableError(Exception):
    """Why a tool gives no number."""


def torch_eager(model: Any, inputs: tuple[Any, ...], threads: int) -> Run:
    import torch

    torch.set_num_threads(threads)

    def run() -> Any:
        with torch.inference_mode():
            return model(*inputs)

    return run


def onnx_file(model: Any, inputs: tuple[Any, ...], folder: str) -> str:
    import torch

    try:
        import onnxscript  # noqa: F401  # pyright: ignore
    except ImportError as e:
        raise UnavailableError(f"{e.name} is not installed") from e
    path = str(Path(folder) / "model.onnx")
    torch.onnx.export(model, inputs, path, dynamo=True, verbose=False)
    return path


def onnxruntime(model: Any, inputs: tuple[Any, ...], threads: int) -> Run:
    try:
        import onnxruntime as ort  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise UnavailableError("onnxruntime is not installed") from e
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    with tempfile.TemporaryDirectory() as folder:
        session = ort.InferenceSession(
            onnx_file(model, inputs, folder), options, providers=["CPUExecutionProvider"]
        )
    binding = session.io_binding()
    for given, spec in zip(inputs, session.get_inputs(), strict=True):
        binding.bind_cpu_input(spec.name, given.numpy())
    for spec in session.get_outputs():
        binding.bind_output(spec.name, "cpu")

    def run() -> Any:
        session.run_with_iobinding(binding)
        return binding.get_outputs()

    return run


def openvino(model: Any, inputs: tuple[Any, ...], threads: int) -> Run:
    try:
        import openvino as ov  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise UnavailableError("openvino is not installed") from e
    core = ov.Core()
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
              "INFERENCE_PRECISION_HINT": "f32"}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        compiled = core.compile_model(onnx_file(model, inputs, folder), "CPU", config)
    request = compiled.create_infer_request()
    for i, given in enumerate(inputs):
        request.set_input_tensor(i, ov.Tensor(given.numpy()))

    def run() -> Any:
        request.infer()
        return request.get_output_tensor(0).data

    return run


CHANNELS_LAST = (
    "--iree-preprocessing-pass-pipeline=builtin.module("
    "util.func(iree-preprocessing-convert-conv-to-channels-last))"
)
IREE_FLAGS = (
    (),
    (CHANNELS_LAST,),
    ("--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling",
     "--iree-llvmcpu-enable-ukernels=all"),
)  # fmt: skip
"""Sets of flags; the fastest of them counts."""


def iree(model: Any, inputs: tuple[Any, ...], threads: int, flags: tuple[str, ...] = ()) -> Run:
    import iree.compiler as compiler
    import iree.runtime as runtime
    from torch_mlir import fx

    text = str(
        fx.export_and_import(model, *inputs, output_type="linalg-on-tensors", func_name="main")
    )
    arguments = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", *flags]
    try:
        flatbuffer = compiler.compile_str(
            text, target_backends=["llvm-cpu"], input_type="auto", extra_args=arguments
        )
    except compiler.CompilerToolError as e:
        raise UnavailableError(str(e).splitlines()[0]) from e
    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    module = runtime.load_vm_module(
        runtime.VmModule.copy_buffer(config.vm_instance, flatbuffer), config
    )
    device = config.device
    given = [runtime.asdevicearray(device, x.numpy()) for x in inputs]
    function = module.main

    def run() -> Any:
        return function(*given)

    return run


def outputs_of(result: Any) -> np.ndarray[Any, Any]:
    """The first output, of whatever kind a tool gives."""
    first = result[0] if isinstance(result, list | tuple) else result
    for name in ("to_host", "numpy"):
        if hasattr(first, name):
            first = getattr(first, name)()
    return np.asarray(first)


os.environ.setdefault("ORT_LOGGING_LEVEL", "4")
