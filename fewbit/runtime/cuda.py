"""Running a plan of GPU kernels from Python, by the GPU's driver alone.

Memory is taken when the program is loaded, that of state when a session begins. A call's launches
are captured into a graph the first time, which the GPU then runs without waiting for the processor
between them. State stays on the GPU, where the graph reads and updates it; what is copied in a call
is what the caller gives and gets, through memory that the GPU reaches by itself.
"""

from __future__ import annotations

import ctypes
import json
import weakref
from collections.abc import Callable, Sequence
from ctypes import byref, c_size_t, c_uint64, c_void_p
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fewbit.errors import Place, StoreError, UnsupportedError, UsageError
from fewbit.kernels.cuda.driver import Device, Loaded, device
from fewbit.kernels.cuda.plan import Plan
from fewbit.program.artifact import KIND, STATE_FILE, Folder, Manifest, Tensor
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.native import check_inputs, dtype_of, read_initial_state

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
        updates = [tensor.updates for tensor in self.manifest.outputs]
        self.state = tuple(t for t in self.manifest.inputs if t.name in updates)
        """The inputs whose new values are outputs; they are behind all others."""
        has_start = STATE_FILE in self.manifest.files
        self._state_file = folder.file(STATE_FILE) if has_start else None
        self.device = device()
        _check_arch(self.plan.arch, self.device.compute)
        kept = self.state_buffers.values()
        self.addresses = {
            name: self.device.allocate(buffer.bytes)
            for name, buffer in self.plan.buffers.items()
            if name not in kept
        }
        weights = np.fromfile(folder.file(f"{self.manifest.name}.weights"), np.uint8)
        if weights.size:
            self.to_device("weights", weights)
        stream = c_void_p()
        self.device.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        self.stream = int(stream.value or 0)

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """Run the program and return its outputs; state that is left out begins anew."""
        if self.state and len(arrays) == self._own_inputs:
            arrays = (*arrays, *read_initial_state(self.state, self._state_file).values())
        self.place(*arrays)
        self.run()
        return self.outputs()

    def place(self, *arrays: Any) -> None:
        """Copy inputs to the GPU; later runs read them there."""
        self._call.place(check_inputs(arrays, self.manifest.inputs))

    def run(self, stream: int | None = None) -> None:
        """Launch everything, without waiting for it."""
        self._call.launch_graph(self.stream if stream is None else stream)

    def launch(self, stream: int | None = None) -> None:
        """Launch kernel by kernel, as into a graph that the caller captures."""
        self._call.loaded(self.stream if stream is None else stream)

    def graph(self) -> c_void_p:
        """Return the launches as a graph, captured once."""
        return self._call.graph

    def outputs(self) -> tuple[Array, ...]:
        """Wait, and copy the outputs of the last run."""
        return self._call.outputs

    @cached_property
    def _call(self) -> CudaCall:
        """What calls of no session run, whose state is given with each."""
        given = [np.empty(_shape(t), dtype_of(t)) for t in self.manifest.inputs]
        return CudaCall(self, given)

    def prepare(self, *arrays: Any, threads: int | None = None, in_place: bool = False) -> CudaCall:
        """Return a call, to be made again and again: it reads the arrays as they are then.

        State that `initial_state` gave is updated where it is; arrays only with `in_place`. The
        number of threads is the GPU's own.
        """
        if self.state and len(arrays) == self._own_inputs:
            arrays, in_place = (*arrays, *self.initial_state().values()), True
        ports = self.manifest.inputs
        rest = [array for array in arrays if not isinstance(array, CudaState)]
        open_ports = [
            p for p, a in zip(ports, arrays, strict=False) if not isinstance(a, CudaState)
        ]
        given = iter(check_inputs(rest, (*open_ports, *ports[len(arrays) :])))
        checked = [each if isinstance(each, CudaState) else next(given) for each in arrays]
        return CudaCall(self, checked, in_place)

    @property
    def _own_inputs(self) -> int:
        return len(self.manifest.inputs) - len(self.state)

    def check_own(self, arrays: Sequence[Any]) -> list[Array]:
        """Return arrays for all inputs but the state, as the program takes them."""
        return check_inputs(arrays, self.manifest.inputs[: self._own_inputs])

    def initial_state(self) -> dict[str, CudaState]:
        """Return what state starts from, by the names of inputs, on the GPU."""
        start = read_initial_state(self.state, self._state_file)
        return {name: self.hold(array) for name, array in start.items()}

    def hold(self, array: Array) -> CudaState:
        """Return state that stays on the GPU between calls, and starts from an array."""
        return CudaState(self.device, array)

    @property
    def state_buffers(self) -> dict[str, str]:
        """The plan's buffers of state, by the names of inputs."""
        names = [tensor.name for tensor in self.manifest.inputs]
        return {tensor.name: f"state{names.index(tensor.name)}" for tensor in self.state}

    def to_device(self, buffer: str, array: Array) -> None:
        _to_device(self.device, self.addresses[buffer], array)

    @property
    def profile(self) -> Any:
        raise UsageError("programs for GPUs do not count their time", hint="use Nsight Systems")

    @property
    def variant(self) -> None:
        return None

    def use_variant(self, name: str) -> None:
        raise UsageError("programs for GPUs have no variants")

    def close(self) -> None:
        """Release all memory but that of sessions."""
        if "_call" in self.__dict__:
            self._call.loaded.close()
            del self.__dict__["_call"]
        for address in self.addresses.values():
            self.device.free(address)
        self.addresses = {}


class CudaState(HeldState):
    """State in memory of the GPU, whose address stays the same: graphs have it in them."""

    def __init__(self, gpu: Device, array: Array) -> None:
        super().__init__(np.empty(0, array.dtype))
        self._device, self._shape = gpu, array.shape
        self.address = gpu.allocate(array.nbytes)
        weakref.finalize(self, gpu.free, self.address).atexit = False
        self.assign(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = np.empty(self._shape, self._array.dtype)
        self._device.synchronize()
        given = c_void_p(array.ctypes.data), c_uint64(self.address), c_size_t(array.nbytes)
        self._device.call("cuMemcpyDtoH_v2", *given)
        return array if dtype is None else array.astype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def assign(self, array: Any) -> None:
        """Take the values of an array."""
        values = np.asarray(array, self._array.dtype)
        whole = np.ascontiguousarray(np.broadcast_to(values, self._shape))
        self._device.synchronize()
        _to_device(self._device, self.address, whole)


class CudaCall:
    """A call with its inputs, and with state where it is."""

    def __init__(
        self, program: CudaProgram, given: Sequence[Array | CudaState], in_place: bool = False
    ) -> None:
        self._program, self._device = program, program.device
        self._in_place = in_place
        ports = [tensor.name for tensor in program.manifest.inputs]
        self._given = dict(zip(ports, given, strict=True))
        buffers = program.state_buffers
        self._states = {name: self._hold(self._given[name]) for name in buffers}
        places = {buffers[name]: state.address for name, state in self._states.items()}
        self.loaded = Loaded(program.plan, {**program.addresses, **places})
        pinned = _pinned(program.device)
        self._inputs = {
            f"in{i}": pinned(tensor)
            for i, tensor in enumerate(program.manifest.inputs)
            if tensor.name not in buffers
        }
        self._outputs = {
            i: pinned(tensor)
            for i, tensor in enumerate(program.manifest.outputs)
            if tensor.updates is None
        }

    def _hold(self, state: Array | CudaState) -> CudaState:
        return state if isinstance(state, CudaState) else self._program.hold(state)

    def __call__(self) -> tuple[Array, ...]:
        self.run()
        return self.outputs

    def run(self) -> None:
        """Run on the inputs as they are now, and wait; update arrays of state, if asked to."""
        self.place(list(self._given.values()))
        self.launch_graph(self._program.stream)
        self._wait()
        for name, state in self._states.items():
            array = self._given[name]
            if self._in_place and isinstance(array, np.ndarray):
                np.copyto(array, np.asarray(state))

    def place(self, arrays: Sequence[Any]) -> None:
        """Copy inputs to the GPU, and state that is not there."""
        for i, (name, array) in enumerate(zip(self._given, arrays, strict=True)):
            if name not in self._states:
                np.copyto(self._inputs[f"in{i}"], array)
            elif not isinstance(array, CudaState):
                self._states[name].assign(array)
        stream = c_void_p(self._program.stream)
        for buffer, array in self._inputs.items():
            address, size = c_uint64(self._program.addresses[buffer]), c_size_t(array.nbytes)
            source = c_void_p(array.ctypes.data)
            self._device.call("cuMemcpyHtoDAsync_v2", address, source, size, stream)

    def launch_graph(self, stream: int) -> None:
        self._device.call("cuGraphLaunch", self.graph, c_void_p(stream))

    @cached_property
    def graph(self) -> c_void_p:
        """The launches as a graph, captured once."""
        captured, graph = c_void_p(), c_void_p()
        stream = c_void_p(self._program.stream)
        self._device.call("cuStreamBeginCapture_v2", stream, _THREAD_LOCAL)
        self.loaded(self._program.stream)
        self._device.call("cuStreamEndCapture", stream, byref(captured))
        self._device.call("cuGraphInstantiateWithFlags", byref(graph), captured, c_uint64(0))
        self._device.call("cuGraphDestroy", captured)
        weakref.finalize(self, self._device.call, "cuGraphExecDestroy", graph).atexit = False
        return graph

    def _wait(self) -> None:
        """Copy outputs behind what was launched, and wait for them."""
        stream = c_void_p(self._program.stream)
        for i, array in self._outputs.items():
            address, size = c_uint64(self._program.addresses[f"out{i}"]), c_size_t(array.nbytes)
            target = c_void_p(array.ctypes.data)
            self._device.call("cuMemcpyDtoHAsync_v2", target, address, size, stream)
        self._device.call("cuStreamSynchronize", stream)

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The outputs of the last run, and new values of state."""
        self._wait()
        return tuple(
            self._outputs[i].copy()
            if tensor.updates is None
            else np.asarray(self._states[tensor.updates])
            for i, tensor in enumerate(self._program.manifest.outputs)
        )

    @property
    def own_outputs(self) -> tuple[Array, ...]:
        """Those that are not new values of state."""
        return tuple(self._outputs.values())


def _pinned(gpu: Device) -> Callable[[Tensor], Array]:
    """Return what makes arrays in memory that the GPU reaches without the processor."""

    def make(tensor: Tensor) -> Array:
        shape, dtype = _shape(tensor), dtype_of(tensor)
        size = prod(shape) * dtype.itemsize
        address = c_void_p()
        gpu.call("cuMemAllocHost_v2", byref(address), c_size_t(max(size, 1)))
        memory = (ctypes.c_char * max(size, 1)).from_address(address.value or 0)
        weakref.finalize(memory, gpu.call, "cuMemFreeHost", address).atexit = False
        return np.frombuffer(memoryview(memory), dtype, prod(shape)).reshape(shape)

    return make


def _to_device(gpu: Device, address: int, array: Array) -> None:
    size = c_size_t(array.nbytes)
    gpu.call("cuMemcpyHtoD_v2", c_uint64(address), c_void_p(array.ctypes.data), size)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(size or 0 for size in tensor.shape)


def read_plan(folder: Folder) -> Plan:
    """Return the plan of an artifact, with its machine code."""
    plain = json.loads(folder.file(PLAN).read_text(encoding="utf-8"))
    count = sum(name.endswith(".cubin") for name in folder.manifest.files)
    plan = Plan.of({**plain, "images": []})
    images = tuple(folder.file(f"{i}.cubin").read_bytes() for i in range(count))
    return Plan(plan.name, plan.arch, plan.buffers, plan.launches, images)


def _check_sizes(folder: Folder, plan: Plan) -> None:
    """Check that arrays of the manifest's shapes fit the plan's memory."""
    updates = {tensor.updates for tensor in folder.manifest.outputs}
    for i, tensor in enumerate(folder.manifest.inputs):
        _check_size(folder, plan, tensor, f"{'state' if tensor.name in updates else 'in'}{i}")
    for i, tensor in enumerate(folder.manifest.outputs):
        if tensor.updates is None:
            _check_size(folder, plan, tensor, f"out{i}")


def _check_size(folder: Folder, plan: Plan, tensor: Tensor, name: str) -> None:
    buffer = plan.buffers.get(name)
    size = prod(_shape(tensor)) * dtype_of(tensor).itemsize
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
