"""IREE, in float32, from the linalg that torch-mlir makes; some sets of flags are tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewbit.bench.case import Array, Case
from fewbit.bench.peers.peer import Peer, Session

if TYPE_CHECKING:
    from iree.runtime import DeviceArray

    Results = DeviceArray | list[DeviceArray] | tuple[DeviceArray, ...]

FLAGS = {
    "float32": (),
    "float32, channels last": (
        "--iree-preprocessing-pass-pipeline=builtin.module("
        "util.func(iree-preprocessing-convert-conv-to-channels-last))",
    ),
    "float32, data tiling": (
        "--iree-opt-data-tiling",
        "--iree-dispatch-creation-data-tiling",
        "--iree-llvmcpu-enable-ukernels=all",
    ),
}


class Iree(Peer):
    """IREE's compiler and runtime."""

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("iree.compiler", "iree.runtime", "torch_mlir")

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return tuple(FLAGS)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        import iree.compiler as compiler

        flags = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", *FLAGS[variant]]
        flatbuffer = compiler.compile_file(
            str(_linalg(case)), target_backends=["llvm-cpu"], input_type="auto", extra_args=flags
        )
        assert flatbuffer is not None
        (folder / "model.vmfb").write_bytes(flatbuffer)

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        import iree.runtime as runtime

        if threads > 1:
            runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
        config = runtime.Config("local-sync" if threads == 1 else "local-task")
        flatbuffer = (folder / "model.vmfb").read_bytes()
        module = runtime.load_vm_module(
            runtime.VmModule.copy_buffer(config.vm_instance, flatbuffer), config
        )
        given = [runtime.asdevicearray(config.device, array) for array in case.inputs]
        function: Callable[..., Results] = module.main

        def outputs() -> list[Array]:
            results = function(*given)
            several = results if isinstance(results, list | tuple) else [results]
            return [np.asarray(each.to_host()) for each in several]

        return Session(lambda: function(*given), outputs)


def _linalg(case: Case) -> Path:
    from torch_mlir import fx

    path = case.place("linalg") / "model.mlirbc"
    if not path.exists():
        module = fx.export_and_import(
            case.module(), *case.tensors(), output_type="linalg-on-tensors", func_name="main"
        )
        with path.open("wb") as file:
            module.operation.write_bytecode(file)
    return path
