"""Running a plan of GPU kernels from Python, by the GPU's driver alone.

All memory is taken when the program is loaded. Its launches are captured into a graph at the first
call, which the GPU then runs without waiting for the processor between them.
"""

from __future__ import annotations

import json
from ctypes import byref, c_size_t, c_uint64, c_void_p
from math import prod
from typing import Any

import numpy as np

from fewbit.errors import Place, StoreError, UnsupportedError, UsageError
from fewbit.kernels.cuda.driver import Loaded, device
from fewbit.kernels.cuda.plan import Plan
from fewbit.program.artifact import KIND, Folder, Manifest
from fewbit.runtime.native import check_inputs, dtype_of

Array = np.ndarray[Any, Any]

PLAN = "plan.json"
"""The file with the plan, but for machine code."""

_NON_BLOCKING = 1
_THREAD_LOCAL = 1
"""Captures what this thread launches, and lets others work."""


class CudaProgram:
    """An artifact of `fewbit compile -t cuda`, on the GPU."""

    def __init__(self, folder: Folder) -> None:
        self.manifest: Manifest = folder.manifest
        self.plan = read_plan(folder)
        _check_sizes(folder, self.plan)
        self.device = device()
        _check_arch(self.plan.arch, self.device.compute)
        self.addresses = {
            name: self.device.allocate(buffer.bytes) for name, buffer in self.plan.buffers.items()
        }
        weights = np.fromfile(folder.file(f"{self.manifest.name}.weights"), np.uint8)
        if weights.size:
            self.to_device("weights", weights)
        self.loaded = Loaded(self.plan, self.addresses)
        stream = c_void_p()
        self.device.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        self.stream = int(stream.value or 0)
        self._graph: c_void_p | None = None

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """Run the program and return its outputs."""
        self.place(*arrays)
        self.run()
        return self.outputs()

    def place(self, *arrays: Any) -> None:
        """Copy inputs to the GPU; later runs read them there."""
        for i, array in enumerate(check_inputs(arrays, self.manifest.inputs)):
            self.to_device(f"in{i}", np.ascontiguousarray(array))

    def run(self, stream: int | None = None) -> None:
        """Launch everything, without waiting for it."""
        given = self.stream if stream is None else stream
        self.device.call("cuGraphLaunch", self.graph(), c_void_p(given))

    def launch(self, stream: int | None = None) -> None:
        """Launch kernel by kernel, as into a graph that the caller captures."""
        self.loaded(self.stream if stream is None else stream)

    def graph(self) -> c_void_p:
        """Return the launches as a graph, captured once."""
        if self._graph is None:
            captured, graph = c_void_p(), c_void_p()
            stream = c_void_p(self.stream)
            self.device.call("cuStreamBeginCapture_v2", stream, _THREAD_LOCAL)
            self.loaded(self.stream)
            self.device.call("cuStreamEndCapture", stream, byref(captured))
            self.device.call("cuGraphInstantiateWithFlags", byref(graph), captured, c_uint64(0))
            self._graph = graph
        return self._graph

    def outputs(self) -> tuple[Array, ...]:
        """Wait, and copy the outputs of the last run."""
        self.device.call("cuStreamSynchronize", c_void_p(self.stream))
        return tuple(self._output(i) for i in range(len(self.manifest.outputs)))

    def to_device(self, buffer: str, array: Array) -> None:
        address, size = c_uint64(self.addresses[buffer]), c_size_t(array.nbytes)
        self.device.call("cuMemcpyHtoD_v2", address, c_void_p(array.ctypes.data), size)

    @property
    def profile(self) -> Any:
        raise UsageError("programs for GPUs do not count their time", hint="use Nsight Systems")

    @property
    def variant(self) -> None:
        return None

    def use_variant(self, name: str) -> None:
        raise UsageError("programs for GPUs have no variants")

    def close(self) -> None:
        """Release all memory."""
        self.loaded.close()
        for address in self.addresses.values():
            self.device.free(address)
        self.addresses = {}

    def _output(self, number: int) -> Array:
        tensor = self.manifest.outputs[number]
        sizes = [size or 0 for size in tensor.shape]
        array = np.empty(sizes, dtype_of(tensor))
        address = c_uint64(self.addresses[f"out{number}"])
        self.device.call(
            "cuMemcpyDtoH_v2", c_void_p(array.ctypes.data), address, c_size_t(array.nbytes)
        )
        return array


def read_plan(folder: Folder) -> Plan:
    """Return the plan of an artifact, with its machine code."""
    plain = json.loads(folder.file(PLAN).read_text(encoding="utf-8"))
    count = sum(name.endswith(".cubin") for name in folder.manifest.files)
    plan = Plan.of({**plain, "images": []})
    images = tuple(folder.file(f"{i}.cubin").read_bytes() for i in range(count))
    return Plan(plan.name, plan.arch, plan.buffers, plan.launches, images)


def _check_sizes(folder: Folder, plan: Plan) -> None:
    """Check that arrays of the manifest's shapes fit the plan's memory."""
    for role, tensors in (("in", folder.manifest.inputs), ("out", folder.manifest.outputs)):
        for i, tensor in enumerate(tensors):
            buffer = plan.buffers.get(f"{role}{i}")
            size = prod(size or 0 for size in tensor.shape) * dtype_of(tensor).itemsize
            if None in tensor.shape or buffer is None or buffer.bytes != size:
                raise StoreError(
                    f"'{tensor.name}' has another size in the manifest than in the plan",
                    place=Place(file=str(folder.path)),
                    hint=KIND.remake,
                )


def _check_arch(code: str, compute: int) -> None:
    """Check that the code runs here: on its own generation, or a later one of its first digit."""
    number = int(code.removeprefix("sm_").rstrip("a"))
    same = number // 10 == compute // 10 and number <= compute
    if not same or (code.endswith("a") and number != compute):
        raise UnsupportedError(
            f"the program was compiled for {code}, and this GPU is sm_{compute}",
            hint=f"compile it for this one: -t cuda:sm_{compute}",
        )


def load_cuda(folder: Folder) -> CudaProgram:
    return CudaProgram(folder)
