"""Running modules of IREE from Python: on this processor, or on a GPU by its driver.

A device is opened when it is first used, and the module with its parameters is loaded there once.
Inputs are checked here before a call: IREE would read beyond the end of an array that is too small.
They are checked against the manifest, so this must say what the module says of itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fewbit.errors import Error, Place, ShapeError, StoreError, UnsupportedError, UsageError
from fewbit.program.artifact import KIND, Folder, Function, Manifest, Tensor
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.native import check_inputs, check_threads, dtype_of
from fewbit.targets.iree.parameters import SCOPE
from fewbit.toolchain.iree_devices import find_device

if TYPE_CHECKING:
    from iree.runtime import HalDevice, HalDriver, ParameterIndex

Array = np.ndarray[Any, Any]

_lock = threading.Lock()
"""Flags of the runtime are global to the process, and read when a driver is created."""
_pools: dict[int, tuple[HalDriver, HalDevice]] = {}
"""Drivers by their number of threads, and their devices; kept as long as the process lasts."""


class IreeModule:
    """A module as `fewbit compile -t iree-...` makes it, loaded."""

    def __init__(self, folder: Folder) -> None:
        self.manifest = folder.manifest
        self.threads = 1
        """How many threads a call uses on a CPU, unless it says otherwise."""
        self.device: str | None = None
        """Where calls run, unless they say otherwise: a driver of IREE, or a device's address."""
        self._module = folder.file(f"{self.manifest.name}.vmfb").read_bytes()
        _check_functions(folder, self._module)
        self._parameters = _parameters(folder)
        self._sessions: dict[tuple[str, int], _Session] = {}

    def __call__(
        self,
        *arrays: Any,
        threads: int | None = None,
        device: str | None = None,
        function: str | None = None,
    ) -> tuple[Array, ...]:
        """Run a function, by default the first, and return its outputs."""
        call = self.prepare(*arrays, threads=threads, device=device, function=function)
        return call()

    def prepare(
        self,
        *arrays: Any,
        threads: int | None = None,
        device: str | None = None,
        function: str | None = None,
    ) -> PreparedCall:
        """Return a call whose inputs are on the device already, to be made again and again."""
        called = find_function(self.manifest, function)
        session = self._session(device or self.device, self.threads if threads is None else threads)
        given = _arguments(called, arrays)
        return PreparedCall(session.invoker(called.name), [session.place(a) for a in given], called)

    def hold(self, array: Array) -> HeldState:
        """Return state that stays on the device between calls, and starts from an array."""
        return HeldState(array)

    def call_held(
        self, arrays: Sequence[Any], updates: Mapping[int, int], threads: int | None = None
    ) -> tuple[Any, ...]:
        """Run the first function on arrays and held state, which it updates.

        `updates` has, by the numbers of outputs, those of the inputs that are their old values.
        """
        called = find_function(self.manifest, None)
        session = self._session(self.device, self.threads if threads is None else threads)
        given = [a.on(session) if isinstance(a, HeldState) else session.place(a) for a in arrays]
        call = PreparedCall(session.invoker(called.name), given, called)
        call.run()
        results: list[Any] = []
        for number, value in enumerate(call.device_outputs):
            state = arrays[updates[number]] if number in updates else None
            if isinstance(state, HeldState):
                state.update(value)
                results.append(state)
            else:
                results.append(_to_host(value, dtype_of(called.outputs[number])))
        return tuple(results)

    def find_function(self, name: str | None) -> Function:
        """The function of that name, or the only one."""
        return find_function(self.manifest, name)

    def result_format(self, function: Function) -> Callable[[Sequence[Array]], str] | None:
        """Print results of a module made of plain MLIR as IREE's tool does."""
        if "source" not in self.manifest.options:
            return None
        from fewbit.runtime.buffer_view import format_result

        def show(results: Sequence[Array]) -> str:
            pairs = zip(function.outputs, results, strict=True)
            lines = [format_result(i, port, array) for i, (port, array) in enumerate(pairs)]
            return "\n".join([f"EXEC @{function.name}", *lines])

        return show

    @property
    def profile(self) -> Any:
        raise UsageError(
            "modules of IREE do not count their time",
            hint="'fewbit inspect dispatches DIR' shows what they consist of",
        )

    @property
    def variant(self) -> None:
        return None

    def use_variant(self, name: str) -> None:
        raise UsageError("modules of IREE have no variants")

    def _session(self, device: str | None, threads: int) -> _Session:
        usual = find_device(self.manifest.target).drivers
        count = check_threads(threads)
        name = device or (usual[0] if count == 1 or len(usual) == 1 else usual[-1])
        if name.partition(":")[0] not in usual:
            raise UsageError(
                f"a module for {self.manifest.target} does not run on '{name}'",
                hint=f"devices for it are {', '.join(usual)}",
            )
        key = name, count
        if key not in self._sessions:
            self._sessions[key] = _Session(
                self._module, self._parameters, name, count, self.manifest
            )
        return self._sessions[key]


class _Session:
    """The module, loaded on one device."""

    def __init__(
        self,
        module: bytes,
        parameters: ParameterIndex | None,
        device: str,
        threads: int,
        manifest: Manifest,
    ) -> None:
        import iree.runtime as runtime

        self._runtime = runtime
        self.device = open_device(device, threads)
        instance = runtime.VmInstance()
        loaded = runtime.VmModule.copy_buffer(instance, module)
        modules = [runtime.create_hal_module(instance, self.device), loaded]
        if parameters is not None:
            provider = parameters.create_provider(scope=SCOPE)
            modules.insert(0, runtime.create_io_parameters_module(instance, provider))
        try:
            self._context = runtime.VmContext(instance, modules)
        except Exception as e:
            raise UnsupportedError(
                f"the device '{device}' does not load the module: {_first_line(e)}",
                hint=f"it was compiled for {manifest.target}",
            ) from e
        self._loaded = loaded

    def invoker(self, function: str) -> Callable[..., Any]:
        looked_up = self._loaded.lookup_function(function)
        return self._runtime.FunctionInvoker(self._context, self.device, looked_up)

    def place(self, value: Any) -> Any:
        """Copy an array to the device; numbers are given as they are."""
        if not isinstance(value, np.ndarray):
            return value
        return self._runtime.asdevicearray(self.device, cast(Array, value))

    def fetch(self, value: Any, dtype: np.dtype[Any]) -> Array:
        """Copy an array from the device."""
        return _to_host(value, dtype)


@dataclass
class PreparedCall:
    """A call with its inputs at their place."""

    invoke: Callable[..., Any]
    inputs: list[Any]
    function: Function
    device_outputs: Sequence[Any] = field(default=(), init=False)
    """The outputs of the last run, where they are."""

    def run(self) -> None:
        try:
            outputs = self.invoke(*self.inputs)
        except Exception as e:
            raise _as_error(e) from e
        if outputs is None:
            self.device_outputs = ()
        else:
            several = isinstance(outputs, list | tuple)
            self.device_outputs = cast(Sequence[Any], outputs) if several else (outputs,)

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The outputs of the last run, copied from the device."""
        ports = self.function.outputs
        pairs = zip(self.device_outputs, ports, strict=True)
        return tuple(_to_host(output, dtype_of(port)) for output, port in pairs)

    @property
    def own_outputs(self) -> tuple[Array, ...]:
        """All outputs: modules of IREE have no state."""
        return self.outputs

    def __call__(self) -> tuple[Array, ...]:
        self.run()
        return self.outputs


def load_iree(folder: Folder) -> IreeModule:
    if "phase" in folder.manifest.options:
        raise UsageError(
            f"the artifact is a program after IREE's phase '{folder.manifest.options['phase']}'",
            hint=f"go on from there: fewbit compile {folder.path} -t {folder.manifest.target}",
        )
    return IreeModule(folder)


def open_device(address: str, threads: int = 1) -> HalDevice:
    """Open a device by its driver, `vulkan`, or by an address as `fewbit doctor` shows it."""
    import iree.runtime as runtime
    from iree.runtime._binding import create_hal_driver

    driver = address.partition(":")[0]
    try:
        if driver != "local-task":
            return runtime.get_device(address)
        with _lock:
            if threads not in _pools:
                runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
                created = create_hal_driver(address)
                _pools[threads] = created, created.create_default_device()
            return _pools[threads][1]
    except Exception as e:
        raise UnsupportedError(
            f"this machine has no device '{address}' for IREE: {_first_line(e)}",
            hint="'fewbit doctor' lists the devices that there are",
        ) from e


def find_function(manifest: Manifest, name: str | None) -> Function:
    functions = {function.name: function for function in manifest.functions}
    if name is None:
        return manifest.functions[0]
    if name not in functions:
        raise UsageError(
            f"the module has no function '{name}'", hint=f"it has {', '.join(functions)}"
        )
    return functions[name]


def list_devices(driver: str) -> list[str]:
    """Return addresses of the devices that a driver finds; none where there is no such driver."""
    import iree.runtime as runtime

    try:
        infos = runtime.get_driver(driver).query_available_devices()
    except Exception:
        return []
    return [f"{driver}://{info.get('path', '')}" for info in infos]


def _check_functions(folder: Folder, module: bytes) -> None:
    from fewbit.runtime.iree_reflection import functions_of

    compiled = {function.name: function for function in functions_of(module)}
    listed = folder.manifest.functions
    if not listed or any(not _agree(each, compiled.get(each.name)) for each in listed):
        raise StoreError(
            "the functions of the module are not those that the manifest describes",
            place=Place(file=str(folder.path)),
            hint=KIND.remake,
        )


def _agree(listed: Function, compiled: Function | None) -> bool:
    if compiled is None:
        return False
    if not compiled.inputs and not compiled.outputs:
        return True  # IREE records nothing for torch's dialect
    return _types(listed.inputs) == _types(compiled.inputs) and (
        _types(listed.outputs) == _types(compiled.outputs)
    )


def _types(tensors: Sequence[Tensor]) -> list[tuple[object, ...]]:
    return [(tensor.shape, tensor.element, tensor.scalar) for tensor in tensors]


def _parameters(folder: Folder) -> ParameterIndex | None:
    name = f"{folder.manifest.name}.irpa"
    if name not in folder.manifest.files:
        return None
    from iree.runtime import ParameterIndex

    index = ParameterIndex()
    index.load(str(folder.file(name)))
    return index


def _arguments(function: Function, given: Sequence[Any]) -> list[Any]:
    checked = iter(
        check_inputs(
            [g if not t.scalar else np.asarray(g, dtype_of(t)) for g, t in _pairs(function, given)],
            function.inputs,
        )
    )
    return [next(checked).item() if t.scalar else next(checked) for t in function.inputs]


def _pairs(function: Function, given: Sequence[Any]) -> list[tuple[Any, Tensor]]:
    if len(given) != len(function.inputs):
        names = ", ".join(t.name for t in function.inputs)
        raise UsageError(
            f"'{function.name}' takes {len(function.inputs)} inputs ({names}), {len(given)} given"
        )
    return list(zip(given, function.inputs, strict=True))


def _to_host(value: Any, dtype: np.dtype[Any]) -> Array:
    if not hasattr(value, "to_host"):
        return np.asarray(value, dtype)
    if value._is_mappable():
        return np.array(value.to_host())
    return _copy_to_host(value).astype(dtype, copy=False)


def _copy_to_host(array: Any) -> Array:
    """Copy an array out of a device's own memory, by way of memory that both can reach.

    IREE 3.13's own copy gives numpy's memory to Vulkan as it is, which takes whole pages only.
    """
    from iree.runtime import BufferUsage, HalElementType, HalFence, MemoryType

    view, device = array._buffer_view, array._device
    source = view.get_buffer()
    staging = device.allocator.allocate_buffer(
        memory_type=int(MemoryType.HOST_LOCAL | MemoryType.DEVICE_VISIBLE),
        allowed_usage=int(BufferUsage.TRANSFER_TARGET | BufferUsage.MAPPING_SCOPED),
        allocation_size=source.byte_length(),
    )
    done = device.create_semaphore(0)
    device.queue_copy(
        source,
        staging,
        wait_semaphores=HalFence.create_at(done, 0),
        signal_semaphores=HalFence.create_at(done, 1),
    )
    HalFence.create_at(done, 1).wait()
    dtype = HalElementType.map_to_dtype(view.element_type)
    return np.array(staging.map().asarray(view.shape, dtype))


def _as_error(e: Exception) -> Error:
    text = str(e)
    if any(kind in text for kind in ("INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION")):
        return ShapeError(f"the inputs do not fit together: {_first_line(e)}")
    return Error(f"IREE's runtime reports an error: {_first_line(e)}")


def _first_line(e: Exception) -> str:
    lines = [line for line in str(e).splitlines() if line.strip()]
    return lines[0] if lines else type(e).__name__
