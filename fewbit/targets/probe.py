"""Which targets work on this machine, found out by running something on each.

A probe does the smallest real piece of work that its target stands on: compile a function of one
operation, run it, compare the result. A target "works" only when fewbit has it and its probe
came back right. A target that this version does not have says so, and still tells whether its
foundation is there, because that is what one would install in advance.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fewbit.targets.llvm import emit_object
from fewbit.targets.tools import tool_path

Status = Literal["works", "unavailable", "not in this version"]
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
    home: str
    """The module that would implement it."""
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
    if not _exists(target.home):
        why = f"planned; here {found.why}"
        return Report(target.name, "not in this version", why, found.install)
    status: Status = "works" if found.works else "unavailable"
    return Report(target.name, status, found.why, found.install)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


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
    linker = tool_path("iree-lld")
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


def probe_iree(kind: IreeDriver) -> Found:
    """Compile a module for the device and run it there."""
    compiler, runner = tool_path("iree-compile"), tool_path("iree-run-module")
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
    return Found(True, f"NVIDIA's driver answers for {name.value.decode()}")


def probe_simulator() -> Found:
    """Nothing to probe: the simulators will come inside fewbit."""
    return Found(False, "nothing needs to be installed for it")


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

TARGETS = (
    Target("interpreter", "fewbit.interpreter", probe_interpreter),
    Target("cpu", "fewbit.targets.cpu", probe_native),
    Target("iree-cpu", "fewbit.targets.iree", partial(probe_iree, IREE_CPU)),
    Target("iree-vulkan", "fewbit.targets.iree", partial(probe_iree, IREE_VULKAN)),
    Target("iree-cuda", "fewbit.targets.iree", partial(probe_iree, IREE_CUDA)),
    Target("iree-rocm", "fewbit.targets.iree", partial(probe_iree, IREE_ROCM)),
    Target("cuda", "fewbit.targets.cuda", probe_cuda),
    Target("vexii", "fewbit.targets.vexii", probe_simulator),
    Target("gemmini", "fewbit.targets.gemmini", probe_simulator),
    Target("bitfusion", "fewbit.targets.bitfusion", probe_simulator),
)
