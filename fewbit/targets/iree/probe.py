"""Whether IREE reaches a device of each kind, and computes there."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fewbit.targets.probe import ADD_ONE_OP, REINSTALL, TIME_LIMIT_SECONDS, Found, run_program
from fewbit.toolchain.tools import program_path


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
        source.write_text(ADD_ONE_OP, encoding="utf-8")
        run_program(compiler, *kind.compile_flags, str(source), "-o", str(compiled))
        output = run_program(
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


DRIVERS = {
    "iree-cpu": IREE_CPU,
    "iree-cuda": IREE_CUDA,
    "iree-vulkan": IREE_VULKAN,
    "iree-rocm": IREE_ROCM,
    "iree-metal": IREE_METAL,
}
