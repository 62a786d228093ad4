"""Which targets work on this machine, found out by running something on each.

A probe does a small real piece of work: a layer is compiled for the target, run there, and compared
with the interpreter. Where the target stands on a driver or on tools of others, the probe asks for
these first, and can so say what to install. A target "works" only when its probe came back right.

The targets are those of the registry, so that none can be missing here.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal

from fewbit.errors import Error
from fewbit.targets import registry
from fewbit.targets.llvm import emit_object
from fewbit.targets.tools import program_path

Status = Literal["works", "unavailable"]
TIME_LIMIT_SECONDS = 20


@dataclass(frozen=True)
class Report:
    """One target on this machine; `install` is empty where nothing needs to be."""

    target: str
    status: Status
    why: str
    install: str


@dataclass(frozen=True)
class Found:
    works: bool
    why: str
    install: str = ""


@dataclass(frozen=True)
class Target:
    name: str
    probe: Callable[[], Found]


def probe_targets() -> list[Report]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(probe_target, TARGETS))


def probe_target(target: Target) -> Report:
    try:
        found = target.probe()
    except Exception as e:
        # Drivers and wheels fail in every way there is; to find that out is the point.
        reason = (str(e).strip() or type(e).__name__).splitlines()[0]
        found = Found(False, f"the probe failed: {reason}", REINSTALL)
    status: Status = "works" if found.works else "unavailable"
    return Report(target.name, status, found.why, found.install)


REINSTALL = "'make clean setup' in fewbit's folder"


def probe_interpreter() -> Found:
    import numpy as np

    from fewbit.interpreter import interpret
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify

    module = parse_module(_ADD_ONE_OP)
    verify(module)
    x = np.arange(4, dtype=np.int32)
    (y,) = interpret(module, x, function="double")
    if not np.array_equal(y, x + x):
        return Found(False, f"it computed {y} for {x} + {x}", REINSTALL)
    return Found(True, "interpreted a function")


def probe_native() -> Found:
    """LLVM IR to an object, a shared library, and a call: what the `cpu` target stands on."""
    linker = program_path("iree-lld")
    if linker is None:
        return Found(False, "the linker of iree-base-compiler is missing", REINSTALL)
    ir = "define i32 @double(i32 %x) {\n %y = add i32 %x, %x\n ret i32 %y\n}"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "double.o"), Path(folder, "double.so")
        source.write_bytes(emit_object(ir))
        _run(linker, "-flavor", "gnu", "-shared", "-o", str(library), str(source))
        answer: int = ctypes.CDLL(str(library)).double(21)
    if answer != 42:
        return Found(False, f"a generated function returned {answer}, not 42", REINSTALL)
    return Found(True, "generated, linked and called a native function")


@dataclass(frozen=True)
class IreeDriver:
    """How IREE reaches one kind of device."""

    words: str
    driver: str
    compile_flags: tuple[str, ...]
    install: str


IREE_CPU = IreeDriver(
    words="CPU",
    driver="local-task",
    compile_flags=(
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ),
    install=REINSTALL,
)
IREE_VULKAN = IreeDriver(
    words="Vulkan",
    driver="vulkan",
    compile_flags=("--iree-hal-target-device=vulkan",),
    install="the GPU's Vulkan driver, or a software one (Debian: mesa-vulkan-drivers libvulkan1)",
)
IREE_CUDA = IreeDriver(
    words="CUDA",
    driver="cuda",
    compile_flags=("--iree-hal-target-device=cuda",),
    install="an NVIDIA GPU with its driver",
)
IREE_ROCM = IreeDriver(
    words="ROCm",
    driver="hip",
    compile_flags=("--iree-hal-target-device=hip",),
    install="an AMD GPU with ROCm's HIP runtime",
)
IREE_METAL = IreeDriver(
    words="Metal",
    driver="metal",
    compile_flags=(
        "--iree-hal-target-device=metal",
        "--iree-metal-compile-to-metallib=false",
    ),
    install="a Mac with Apple silicon",
)


def probe_iree(kind: IreeDriver) -> Found:
    """Compile a module for the device and run it there."""
    compiler, runner = program_path("iree-compile"), program_path("iree-run-module")
    if compiler is None or runner is None:
        return Found(False, "IREE's compiler or runtime is missing", REINSTALL)
    listing = subprocess.run(
        [runner, f"--list_devices={kind.driver}"],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_SECONDS,
    )
    if listing.returncode or not listing.stdout.strip():
        return Found(False, f"IREE finds no {kind.words} device", kind.install)
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder, "double.mlir"), Path(folder, "double.vmfb")
        source.write_text(_ADD_ONE_OP, encoding="utf-8")
        _run(compiler, *kind.compile_flags, str(source), "-o", str(compiled))
        output = _run(
            runner,
            f"--device={kind.driver}",
            f"--module={compiled}",
            "--function=double",
            "--input=4xi32=0,1,2,3",
        )
    if "4xi32=0 2 4 6" not in output:
        return Found(
            False, f"IREE computed a wrong result on its {kind.words} device", kind.install
        )
    devices = ", ".join(listing.stdout.split())
    return Found(True, f"IREE compiled and ran a module on its {kind.words} device: {devices}")


def probe_cuda() -> Found:
    install = "an NVIDIA GPU with its driver, and fewbit[cuda]"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Found(False, "NVIDIA's driver library is missing", install)
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return Found(False, "NVIDIA's driver finds no GPU", install)
    name = ctypes.create_string_buffer(100)
    driver.cuDeviceGetName(name, len(name), 0)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    ran = probe_layer(f"cuda:sm_{major.value}{minor.value}", install)
    return replace(ran, why=f"{ran.why}, on {name.value.decode()}") if ran.works else ran


def probe_layer(target: str, install: str = REINSTALL) -> Found:
    """Compile a layer for a target and run it: on this machine, or on the target's simulator."""
    import numpy as np

    from fewbit.interpreter import interpret
    from fewbit.program import Program
    from fewbit.targets.compile import compile
    from fewbit.targets.device import Device

    program = Program.parse(_LAYER)
    x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(1, 8)
    with _compiling:
        (wanted,) = interpret(program.module, x)
        try:
            (y,) = compile(program, target, name="probe").run(x)
        except Error as e:
            return Found(False, e.what.splitlines()[0], e.hint or install)
    if not np.allclose(y, wanted, rtol=1e-5, atol=1e-6):
        return Found(False, f"it computed {y} where the interpreter says {wanted}", install)
    simulated = isinstance(registry.find_target(target), Device)
    return Found(True, f"compiled and ran a layer{' on its simulator' if simulated else ''}")


_compiling = Lock()
"""Held while a program is compiled in this process: modules are not shared by threads."""


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS)
    if done.returncode:
        name, reason = Path(command[0]).name, done.stderr.strip() or f"status {done.returncode}"
        raise RuntimeError(f"{name}: {reason}")
    return done.stdout


_ADD_ONE_OP = """\
func.func @double(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = arith.addi %x, %x : tensor<4xi32>
  func.return %y : tensor<4xi32>
}
"""

_WEIGHTS = bytes(range(32)).hex()
_LAYER = f"""\
mico.constant @fc.scale : tensor<4xf32> = dense<[0.5, 0.25, 1.0, 2.0]>
mico.constant @fc.weight : tensor<4x8x!mico.int<8>> = dense<"0x{_WEIGHTS}"> scale @fc.scale
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x4xf32> {{
  %s = arith.constant 0.03125 : f32
  %y = mico.bitlinear(%x, @fc.weight) act_scale(%s) {{act_bits = 8}}
    : (tensor<1x8xf32>, f32) -> tensor<1x4xf32>
  %z = mico.relu(%y) : tensor<1x4xf32> -> tensor<1x4xf32>
  func.return %z : tensor<1x4xf32>
}}
"""

PROBES: dict[str, Callable[[], Found]] = {
    "cpu": probe_native,
    "cuda": probe_cuda,
    "iree-cpu": partial(probe_iree, IREE_CPU),
    "iree-cuda": partial(probe_iree, IREE_CUDA),
    "iree-vulkan": partial(probe_iree, IREE_VULKAN),
    "iree-rocm": partial(probe_iree, IREE_ROCM),
    "iree-metal": partial(probe_iree, IREE_METAL),
}
"""Targets whose tools or drivers are looked for; a layer is run on all others."""

TARGETS = (
    Target("interpreter", probe_interpreter),
    *(Target(name, PROBES.get(name, partial(probe_layer, name))) for name in registry.TARGETS),
)
