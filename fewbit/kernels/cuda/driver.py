"""Running plans with the CUDA driver alone, through ctypes.

`libcuda` comes with the GPU's driver, so nothing is installed for it. The device's primary context
is used, which PyTorch uses too: addresses and streams of one are valid in the other, and a test can
hand a tensor's address to our kernel. Every call's status is looked at.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

from fewbit.errors import MissingToolError, UnsupportedError
from fewbit.kernels.cuda.arch import ARCHS, Arch
from fewbit.kernels.cuda.plan import Argument, Launch, Plan, Pointer, Scalar, TensorMap

_MAP_TYPES = {"u8": 0, "i8": 0, "f8": 0, "i32": 3, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTION = 2
_MOST_SHARED = 8
_CLUSTER, _EARLY = 4, 6
_COMPUTE_MAJOR, _COMPUTE_MINOR, _MULTIPROCESSORS = 75, 76, 16


class _LaunchConfig(ctypes.Structure):
    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


class _Attribute(ctypes.Structure):
    _fields_ = (("id", c_int), ("pad", c_char * 4), ("value", c_uint * 16))


class _Map(ctypes.Structure):
    """A tensor map: 128 opaque bytes, aligned to 64 by hand because ctypes cannot."""

    _fields_ = (("words", c_uint64 * 16),)


class Device:
    """The first GPU."""

    def __init__(self) -> None:
        self.cuda = _library()
        self.call("cuInit", 0)
        handle = c_int()
        self.call("cuDeviceGet", byref(handle), 0)
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), handle)
        self.call("cuCtxSetCurrent", context)
        self.handle = handle
        major, minor = self.attribute(_COMPUTE_MAJOR), self.attribute(_COMPUTE_MINOR)
        self.compute = major * 10 + minor
        self.multiprocessors = self.attribute(_MULTIPROCESSORS)

    @property
    def arch(self) -> Arch:
        """The newest generation whose code this GPU runs."""
        exact = [arch for arch in ARCHS if arch.compute == self.compute]
        family = [arch for arch in ARCHS if arch.compute // 10 == self.compute // 10]
        older = [arch for arch in family if arch.compute <= self.compute]
        if not (exact or older):
            raise UnsupportedError(f"this GPU is sm_{self.compute}, for which nothing is compiled")
        return (exact or older)[-1]

    def attribute(self, number: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), number, self.handle)
        return value.value

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, byref(text))
            raise UnsupportedError(f"{name}: {(text.value or b'?').decode()} ({status})")

    def allocate(self, size: int) -> int:
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", c_uint64(address))

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")


@cache
def device() -> Device:
    return Device()


class Loaded:
    """A plan on the GPU, with its buffers' addresses filled in: call it to launch."""

    def __init__(self, plan: Plan, addresses: Mapping[str, int]) -> None:
        self.device = device()
        self.plan = plan
        self.own = {
            name: self.device.allocate(buffer.bytes)
            for name, buffer in plan.buffers.items()
            if buffer.role == "work" and name not in addresses
        }
        addresses = {**addresses, **self.own}
        self.modules = [_module(image) for image in plan.images]
        self.launches = [self._prepare(launch, addresses) for launch in plan.launches]

    def __call__(self, stream: int = 0) -> None:
        for config, function, parameters, _ in self.launches:
            config.stream = stream
            self.device.call("cuLaunchKernelEx", byref(config), function, parameters, None)

    def close(self) -> None:
        for address in self.own.values():
            self.device.free(address)
        self.own = {}

    def _prepare(self, launch: Launch, addresses: Mapping[str, int]) -> tuple[Any, ...]:
        function = c_void_p()
        module = self.modules[launch.image]
        self.device.call("cuModuleGetFunction", byref(function), module, launch.symbol.encode())
        if launch.shared:
            self.device.call("cuFuncSetAttribute", function, _MOST_SHARED, launch.shared)
        values = [self._value(argument, addresses) for argument in launch.arguments]
        parameters = (c_void_p * len(values))(
            *(ctypes.cast(byref(value), c_void_p) for value in values)
        )
        attributes, block = _attributes(launch), launch.block
        config = _LaunchConfig(
            (c_uint * 3)(*launch.grid),
            (c_uint * 3)(*(block if isinstance(block, tuple) else (block, 1, 1))),
            launch.shared,
            None,
            ctypes.cast(attributes, c_void_p) if len(attributes) else None,
            len(attributes),
        )
        return config, function, parameters, (values, attributes)

    def _value(self, argument: Argument, addresses: Mapping[str, int]) -> Any:
        if isinstance(argument, Pointer):
            return c_uint64(addresses[argument.buffer] + argument.offset)
        if isinstance(argument, Scalar):
            if argument.dtype == "f32":
                return ctypes.c_float(argument.value)
            return (c_int if argument.dtype == "i32" else ctypes.c_int64)(int(argument.value))
        return encode(argument, addresses[argument.buffer] + argument.offset)


def _attributes(launch: Launch) -> ctypes.Array[_Attribute]:
    given: list[_Attribute] = []
    if launch.cluster > 1:
        given.append(_Attribute(_CLUSTER))
        given[-1].value[0:3] = [launch.cluster, 1, 1]
    if launch.early:
        given.append(_Attribute(_EARLY))
        given[-1].value[0] = 1
    return (_Attribute * len(given))(*given)


def encode(tensor: TensorMap, address: int) -> Any:
    """Return a tensor map for a buffer at an address."""
    memory = ctypes.create_string_buffer(128 + 64)
    start = -ctypes.addressof(memory) % 64
    words = _Map.from_buffer(memory, start)
    rank = len(tensor.sizes)
    sizes = (c_uint64 * rank)(*tensor.sizes)
    strides = (c_uint64 * max(rank - 1, 1))(*tensor.strides)
    steps = (c_uint * rank)(*(tensor.steps or (1,) * rank))
    common = (0, _SWIZZLES[tensor.swizzle], _L2_PROMOTION, 0)
    place = (byref(words), _MAP_TYPES[tensor.dtype], rank, c_uint64(address), sizes, strides)
    if tensor.corners is None:
        box = (c_uint * rank)(*tensor.box)
        device().call("cuTensorMapEncodeTiled", *place, box, steps, *common)
        return words
    lower, upper = ((c_int * len(corner))(*corner) for corner in tensor.corners)
    channels, pixels = tensor.box
    device().call("cuTensorMapEncodeIm2col", *place, lower, upper, channels, pixels, steps, *common)
    return words


_modules: dict[bytes, c_void_p] = {}


def _module(image: bytes) -> c_void_p:
    if image not in _modules:
        module = c_void_p()
        device().call("cuModuleLoadData", byref(module), image)
        _modules[image] = module
    return _modules[image]


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise MissingToolError(
            "this machine has no CUDA driver (libcuda.so.1)",
            hint="GPU kernels compile anywhere, and run where there is an NVIDIA GPU",
        ) from error
