"""Calling a native library from Python: numpy arrays in and out, without copies.

Contiguous arrays are given to the library as they are. The arena is kept for the next call, one
for each thread of Python, so calls from several threads do not meet. Shapes and sizes are the
manifest's, so the library must carry its signature; this is looked up before anything is loaded.
"""

from __future__ import annotations

import _ctypes
import ctypes
import math
import mmap
import operator
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbit.base.target_name import TargetName
from fewbit.codegen.interface import COUNTED, ERRORS, MAX_THREADS
from fewbit.codegen.weights_file import WEIGHTS, weights_name
from fewbit.errors import Error, Place, ShapeError, StoreError, UnsupportedError, UsageError
from fewbit.program.artifact import STATE_FILE, Folder, Manifest, Tensor, Variant, signature_of
from fewbit.program.tensor_file import TensorFile
from fewbit.runtime.profile import Profile
from fewbit.toolchain.cblas import Cblas
from fewbit.toolchain.elf import dynamic_data, needed_by
from fewbit.toolchain.isa import Isa, is_known
from fewbit.toolchain.llvm import host_features
from fewbit.toolchain.system import System, host_system, system_of

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
LARGEST_ARENA = 1 << 47

DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_, "index": np.int64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "si8": np.int8, "si16": np.int16, "si32": np.int32, "si64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip
"""What numpy holds elements in."""


class NativeLibrary:
    """A shared library as `fewbit compile -t cpu` makes it, loaded."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        state: Path | None = None,
        weights: Path | None = None,
    ) -> None:
        """Load a library, with its weights where they are in a file beside it.

        `state` is a file of what state starts from, by default zeros.
        """
        self.manifest = manifest
        self._state_file = state
        updates = [tensor.updates for tensor in manifest.outputs]
        self.state = tuple(tensor for tensor in manifest.inputs if tensor.name in updates)
        """The inputs whose new values are outputs; they are behind all others."""
        self.threads = 1
        """How many threads a call uses, unless it says otherwise."""
        self._library = _load(path, manifest, weights)
        self._inputs = _struct(manifest.inputs)
        self._outputs = _struct(manifest.outputs)
        self._run = getattr(self._library, f"{manifest.name}_run")
        self._run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
        self._shapes = getattr(self._library, f"{manifest.name}_shapes")
        self._shapes.argtypes = [ctypes.c_void_p] * 2
        self._arena_bytes = getattr(self._library, f"{manifest.name}_arena_bytes")
        self._arena_bytes.argtypes = [ctypes.c_void_p]
        self._arena_bytes.restype = ctypes.c_size_t
        self._local = threading.local()
        self._profile = Profile(self._library, manifest.name) if _counts(manifest) else None
        if manifest.variants:
            self._variant = getattr(self._library, f"{manifest.name}_variant")
            self._variant.restype = ctypes.c_char_p
            self._use_variant = getattr(self._library, f"{manifest.name}_use_variant")
            self._use_variant.argtypes = [ctypes.c_char_p]

    def __call__(self, *arrays: Any, threads: int | None = None) -> tuple[Array, ...]:
        """Run the program and return its outputs."""
        return self.prepare(*arrays, threads=threads)()

    def prepare(
        self, *arrays: Any, threads: int | None = None, in_place: bool = False
    ) -> PreparedCall:
        """Return a call with memory for its outputs, to be made again and again.

        It reads the arrays as they are at each call, if they are contiguous, and overwrites its
        outputs. `in_place` has the new values of state written to the arrays that state is read
        from. State may be left out: the call then has its own, updated in place.
        """
        count = check_threads(self.threads if threads is None else threads)
        if self.state and len(arrays) == self._own_inputs:
            arrays, in_place = (*arrays, *self.initial_state().values()), True
        given = check_inputs(arrays, self.manifest.inputs)
        inputs, outputs = self._inputs(), self._outputs()
        _fill(inputs, self.manifest.inputs, given)
        self._check_status(self._shapes(ctypes.byref(inputs), ctypes.byref(outputs)))
        kept = dict(zip((t.name for t in self.manifest.inputs), given, strict=True))
        results = tuple(
            kept[tensor.updates]
            if in_place and tensor.updates is not None
            else _empty(tensor, outputs)
            for tensor in self.manifest.outputs
        )
        _fill(outputs, self.manifest.outputs, results)
        arena = self._arena(self._arena_bytes(ctypes.byref(inputs)))
        pointers = ctypes.byref(inputs), ctypes.byref(outputs)

        def call() -> None:
            self._check_status(self._run(*pointers, arena, count))

        kept_alive = given, inputs, outputs, self._local.arena
        own = [tensor.updates is None for tensor in self.manifest.outputs]
        if COUNTED in self.manifest.options:
            return PreparedCall(call, lambda: self._cut(outputs, results), own, kept_alive)
        return PreparedCall(call, lambda: results, own, kept_alive)

    def _cut(self, outputs: ctypes.Structure, results: Sequence[Array]) -> tuple[Array, ...]:
        """Return outputs of the sizes that a run found, which lie at the start of their memory."""
        shapes = (_shape(tensor, outputs) for tensor in self.manifest.outputs)
        return tuple(
            array.reshape(-1)[: math.prod(shape)].reshape(shape)
            for array, shape in zip(results, shapes, strict=True)
        )

    @property
    def _own_inputs(self) -> int:
        return len(self.manifest.inputs) - len(self.state)

    def check_own(self, arrays: Sequence[Any]) -> list[Array]:
        """Return arrays for all inputs but the state, as the library takes them."""
        return check_inputs(arrays, self.manifest.inputs[: self._own_inputs])

    def initial_state(self) -> dict[str, Array]:
        """Return new arrays of what state starts from, by the names of inputs."""
        return read_initial_state(self.state, self._state_file)

    def arena_bytes(self, *arrays: Any) -> int:
        """Return how much memory a call with such inputs needs beside inputs and outputs."""
        inputs = self._inputs()
        if self.state and len(arrays) == self._own_inputs:
            arrays = (*arrays, *self.initial_state().values())
        _fill(inputs, self.manifest.inputs, check_inputs(arrays, self.manifest.inputs))
        return int(self._arena_bytes(ctypes.byref(inputs)))

    @property
    def profile(self) -> Profile:
        """Where the time of calls went."""
        if self._profile is None:
            raise UsageError(
                "this library does not count where its time goes",
                hint="compile it with profile=True, or --profile",
            )
        return self._profile

    @property
    def variant(self) -> str | None:
        """Which of its variants the library uses; None where it has no more than one."""
        return self._variant().decode() if self.manifest.variants else None

    def use_variant(self, name: str) -> None:
        """Use a variant in all calls from now on, or with "auto" the best for this machine."""
        names = [variant.name for variant in self.manifest.variants]
        if not names:
            raise UsageError(
                "this library has no variants", hint="compile it with cpu_variants, --cpu-variants"
            )
        if name not in (*names, "auto"):
            hint = f"it has {', '.join(names)}; 'auto' is the best of them here"
            raise UsageError(f"the library has no variant '{name}'", hint=hint)
        if self._use_variant(name.encode()) != 0:
            raise UnsupportedError(
                f"this machine does not execute the variant '{name}'",
                hint=f"it uses '{self.variant}'",
            )

    def _arena(self, size: int) -> int:
        if size > LARGEST_ARENA:
            raise ShapeError("inputs of this size need more memory than any machine has")
        memory: Array | None = getattr(self._local, "arena", None)
        if memory is None or memory.nbytes < size + ALIGNMENT:
            memory = np.empty(size + ALIGNMENT, np.uint8)
            self._local.arena = memory
        return -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT

    def _check_status(self, status: int) -> None:
        if status == 0:
            return
        kind, meaning = ERRORS[status]
        if kind == "SHAPE":
            raise ShapeError(f"the inputs do not fit together: {meaning}")
        raise Error(f"the compiled program reports an error: {meaning}")


@dataclass(frozen=True)
class PreparedCall:
    """A call with everything at its place."""

    run: Callable[[], None]
    results: Callable[[], tuple[Array, ...]]
    """Gives the outputs of the latest call: only a run may know their sizes."""
    own: Sequence[bool]
    """For each output, whether it is not a new value of state."""
    kept: object
    """What must stay in memory as long as this does."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        return self.results()

    @property
    def own_outputs(self) -> tuple[Array, ...]:
        """Those that are not new values of state."""
        return tuple(array for array, own in zip(self.outputs, self.own, strict=True) if own)

    def __call__(self) -> tuple[Array, ...]:
        self.run()
        return self.outputs


def read_initial_state(state: Sequence[Tensor], file: Path | None) -> dict[str, Array]:
    """Return new arrays of what state starts from: what a file has, or zeros."""
    for tensor in state:
        if None in tensor.shape:
            raise UsageError(f"the size of the state '{tensor.name}' is not known: give it")
    if file is None:
        return {t.name: np.zeros([s or 0 for s in t.shape], dtype_of(t)) for t in state}
    opened = TensorFile.open(file)
    return {t.name: np.array(opened.array(t.name)) for t in state}


def _counts(manifest: Manifest) -> bool:
    return "profile" in manifest.options


def load_native(folder: Folder) -> NativeLibrary:
    name = system_of_library(folder.manifest).library(folder.manifest.name)
    has_state = STATE_FILE in folder.manifest.files
    state = folder.file(STATE_FILE) if has_state else None
    return NativeLibrary(folder.file(name), folder.manifest, state, weights_of(folder))


def system_of_library(manifest: Manifest) -> System:
    """Return the system that a library is for."""
    return system_of(manifest.options.get("triple", ""))


def weights_of(folder: Folder) -> Path | None:
    """Return the file of weights beside a library; None where they are in it."""
    if WEIGHTS not in folder.manifest.options:
        return None
    return folder.file(weights_name(folder.manifest.name))


def _load(path: Path, manifest: Manifest, weights: Path | None) -> ctypes.CDLL:
    elf = read_signed(path, manifest)
    hint = (
        f"it was compiled for {manifest.target}; compile for 'cpu' to run it here, or try "
        "'fewbit run', which runs other processors' code in qemu, and that for Windows in wine"
    )
    system = system_of_library(manifest)
    if system is not host_system():
        raise UnsupportedError(
            f"the library is for {system.title}, and this machine does not load it", hint=hint
        )
    if not _runs_here(manifest):
        raise UnsupportedError("this machine does not execute the library's code", hint=hint)
    if "blas" in manifest.options:
        Cblas.of_record(manifest.options["blas"], needed_by(elf)).load()
    try:
        library = _open(path)
    except OSError as e:
        raise UnsupportedError(f"this machine does not load the library: {e}", hint=hint) from e
    mapped = None if weights is None else _give_weights(library, weights, manifest.name)
    # Its functions refer to it, so nothing can call them then. Its threads end when it is unloaded.
    weakref.finalize(library, _unload, library._handle, mapped).atexit = False
    return library


def _open(path: Path) -> ctypes.CDLL:
    """Load a library.

    A path that was loaded before gives the library that was there then: each load has its own. Not
    on Windows, where a file that is loaded is not replaced, and its folder not removed.
    """
    if sys.platform == "win32":
        return ctypes.CDLL(str(path.resolve()))
    with TemporaryDirectory(prefix="fewbit-load-") as folder:
        link = Path(folder) / path.name
        link.symlink_to(path.resolve())
        return ctypes.CDLL(str(link), mode=ctypes.RTLD_LOCAL)


def _unload(handle: int, mapped: object) -> None:
    """Unload a library; its weights stay mapped until then."""
    if sys.platform == "win32":
        _ctypes.FreeLibrary(handle)
    else:
        _ctypes.dlclose(handle)
    del mapped


def _give_weights(library: ctypes.CDLL, path: Path, name: str) -> mmap.mmap:
    """Map the weights and tell the library where they are."""
    handle = library._handle
    mapped = _mapped.get(handle)
    if mapped is not None:  # of the same file: loading it again gives the same library
        return mapped
    with path.open("rb") as file:
        mapped = _Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)
    use = getattr(library, f"{name}_use_weights")
    use.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    status = use(np.frombuffer(mapped, np.uint8).ctypes.data, len(mapped))
    if status != 0:
        raise StoreError(
            f"the library does not take the weights: {ERRORS[status][1]}",
            place=Place(file=str(path)),
            hint="compile the program again",
        )
    _mapped[handle] = mapped
    return mapped


class _Mapping(mmap.mmap):
    """A mapped file that can be referred to weakly."""


_mapped: weakref.WeakValueDictionary[int, _Mapping] = weakref.WeakValueDictionary()
"""The weights of libraries that are loaded, by their handles."""


def read_signed(path: Path, manifest: Manifest) -> bytes:
    """Return the library's bytes, if they carry the signature of the manifest."""
    data, signature = path.read_bytes(), signature_of(manifest).encode()
    is_signed = f"{manifest.name}_signature".encode() in data and signature + b"\0" in data
    if data.startswith(b"\x7fELF"):
        try:
            found = dynamic_data(data, f"{manifest.name}_signature")
        except (struct.error, IndexError, ValueError):
            found = None
        is_signed = found is not None and found.rstrip(b"\0") == signature
    if not is_signed:
        raise StoreError(
            "the library is not the one that the manifest describes",
            place=Place(file=str(path)),
            hint="one of them was changed, or an older fewbit compiled it: compile it again",
        )
    return data


def _runs_here(manifest: Manifest) -> bool:
    """Return whether this machine has what the code uses: else it would end the process."""
    if manifest.variants:
        return any(_is_here(variant) for variant in manifest.variants)
    processor = TargetName.parse(manifest.target).detail
    if is_known(processor):
        return Isa.of(processor).runs_on(host_features())
    needed = manifest.options.get("features", "").split(",")
    return {name[1:] for name in needed if name.startswith("+")} <= host_features()


def _is_here(variant: Variant) -> bool:
    return is_known(variant.name) and Isa.of(variant.name).runs_on(host_features())


def check_threads(count: int) -> int:
    try:
        count = operator.index(count)
    except TypeError:
        raise UsageError(f"a number of threads is an integer, not {count!r}") from None
    if not 1 <= count <= MAX_THREADS:
        raise UsageError(f"{count} threads were asked for; 1 to {MAX_THREADS} are possible")
    return count


def _dynamic(tensor: Tensor) -> list[tuple[int, str]]:
    return [(i, f"{tensor.name}_dim{i}") for i, size in enumerate(tensor.shape) if size is None]


def _struct(tensors: Sequence[Tensor]) -> type[ctypes.Structure]:
    fields: list[tuple[str, Any]] = []
    for tensor in tensors:
        fields.append((tensor.name, ctypes.c_void_p))
        fields += [(name, ctypes.c_int64) for _, name in _dynamic(tensor)]
    return type("Tensors", (ctypes.Structure,), {"_fields_": fields})


def _fill(struct: ctypes.Structure, tensors: Sequence[Tensor], arrays: Sequence[Array]) -> None:
    for tensor, array in zip(tensors, arrays, strict=True):
        setattr(struct, tensor.name, array.ctypes.data)
        for axis, name in _dynamic(tensor):
            setattr(struct, name, array.shape[axis])


def _empty(tensor: Tensor, outputs: ctypes.Structure) -> Array:
    return np.empty(_shape(tensor, outputs), dtype_of(tensor))


def _shape(tensor: Tensor, outputs: ctypes.Structure) -> tuple[int, ...]:
    return tuple(
        getattr(outputs, f"{tensor.name}_dim{i}") if size is None else size
        for i, size in enumerate(tensor.shape)
    )


def dtype_of(tensor: Tensor) -> np.dtype[Any]:
    if tensor.element == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    if tensor.element not in DTYPES:
        raise UnsupportedError(f"'{tensor.name}' has elements of '{tensor.element}'")
    return np.dtype(DTYPES[tensor.element])


def check_inputs(arrays: Sequence[Any], tensors: Sequence[Tensor]) -> list[Array]:
    """Return the inputs as contiguous arrays of the types and shapes that a program takes."""
    if len(arrays) != len(tensors):
        names = ", ".join(t.name for t in tensors)
        raise UsageError(f"the program takes {len(tensors)} inputs ({names}), {len(arrays)} given")
    return [_check_one(a, t) for a, t in zip(arrays, tensors, strict=True)]


def _check_one(given: Any, tensor: Tensor) -> Array:
    wanted = dtype_of(tensor)
    array = _to_numpy(given)
    if array.dtype != wanted:
        raise ShapeError(
            f"input '{tensor.name}' is of {array.dtype}, and the program takes {wanted}",
            hint=f"convert it: {tensor.name}.astype('{wanted}')",
        )
    fits = len(array.shape) == len(tensor.shape) and all(
        size in (None, actual) for size, actual in zip(tensor.shape, array.shape, strict=True)
    )
    if not fits:
        sizes = "x".join("?" if s is None else str(s) for s in tensor.shape)
        actual = "x".join(map(str, array.shape))
        raise ShapeError(f"input '{tensor.name}' is {actual}, and the program takes {sizes}")
    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _to_numpy(given: Any) -> Array:
    if not hasattr(given, "detach"):
        return np.asarray(given)
    tensor = given.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
