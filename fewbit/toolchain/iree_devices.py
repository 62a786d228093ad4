"""Names of IREE targets, as the flags of its compiler and the drivers of its runtime.

`iree-cpu` is this machine; `iree-cpu:aarch64` and the other processors that the `cpu` target has
names for will do, and so will any triple of LLVM. GPUs are named as their makers do: `sm_89`,
`gfx1100`. IREE 3.13 does not know `sm_90` and later by name, though it compiles for them: they are
described here, attribute by attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.toolchain.isa import Isa, canonical_name, names

ARCHITECTURES = ("x86_64", "i686", "aarch64", "arm", "armv7a", "riscv64", "riscv32")
"""What a triple may begin with."""
CUDA_DEFAULT, ROCM_DEFAULT = "sm_80", "gfx1100"
CUDA_BY_ATTRIBUTE = 90
"""From here on, IREE has no name for what NVIDIA makes."""

WIDE = ("--iree-input-demote-f64-to-f32=false", "--iree-vm-target-extension-f64")
"""f64 stays f64: means of weights are accumulated in it."""
SPEED = (
    "--iree-opt-level=O3",
    # Sizes of inputs that must agree are asserted.
    "--iree-opt-strip-assertions=false",
    # Weights are unpacked and laid out for the processor's vectors once, when they are loaded.
    "--iree-opt-const-expr-max-size-increase-threshold=1099511627776",
    # Transposes that we left stay where they are: moved into a matmul, as the one that splits the
    # heads of attention, they keep it from being laid out in tiles, and it takes 3 times as long.
    "--iree-global-opt-propagate-transposes=false",
)
STACK = 65536
"""How many bytes a dispatch may have on the stack."""
SMALL = (
    # What a dispatch keeps between its loops is on the stack of a thread, of which IREE's runtime
    # gives 131072 bytes. A sum with two uses, normalized and rounded at once, takes too much.
    "--iree-dispatch-creation-fuse-multi-use=false",
    f"--iree-llvmcpu-stack-allocation-limit={STACK}",
)
DATA_TILING = (
    # Not --iree-opt-data-tiling, which does the same later: in IREE 3.13 it gives wrong numbers
    # where a softmax of several matrices, whose number is dynamic, feeds a matmul.
    "--iree-global-opt-data-tiling",
    "--iree-llvmcpu-enable-ukernels=all",
)
"""Matrices in tiles for the processor's vectors; with it, IREE fails on some programs."""
ONE_REDUCTION = "--iree-dispatch-creation-enable-aggressive-fusion=false"
"""A dispatch has one reduction, and keeps on its stack nothing of open size between several."""
CPU_SPEED = (*SPEED, *WIDE, *SMALL, *DATA_TILING)


@dataclass(frozen=True)
class Device:
    """A kind of device that IREE compiles for."""

    name: str
    drivers: tuple[str, ...]
    """Drivers of IREE's runtime, the usual one first."""
    flags: Callable[[str], tuple[str, ...]]
    """Flags of IREE's compiler, by what stands behind the colon."""


def find_device(target: str) -> Device:
    return DEVICES[TargetName.parse(target).kind]


def compile_flags(target: str) -> tuple[str, ...]:
    """Return the flags that a target's name stands for; an unknown name is an error."""
    return find_device(target).flags(TargetName.parse(target).detail)


def kernels_for(target: str) -> Isa:
    """Return the processor that our kernels are generated for; others are an error."""
    name, detail = TargetName.parse(target)
    detail = canonical_name(detail)
    if name == "iree-cpu" and (detail or "host") in (*names(), "host"):
        return Isa.of(detail or "host")
    raise UsageError(
        f"there are no kernels for '{target}'",
        hint=f"kernels are for iree-cpu, this machine, and for {', '.join(names())}",
    )


def _cpu(detail: str) -> tuple[str, ...]:
    local = (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        *CPU_SPEED,
    )
    if detail in ("", "host"):
        return (*local, "--iree-llvmcpu-target-cpu=host")
    if canonical_name(detail) in names():
        isa = Isa.of(detail)
        return (*local, *_processor(isa.triple, isa.cpu or "generic", isa.features))
    if re.fullmatch(rf"({'|'.join(ARCHITECTURES)})(-\w+){{1,3}}", detail):
        # Without floats in registers, RISC-V code has another ABI than all libraries.
        features = Isa.of("riscv64").features if detail.startswith("riscv64") else ""
        return (*local, *_processor(detail, "generic", features))
    raise UsageError(
        f"there is no target 'iree-cpu:{detail}'",
        hint=f"iree-cpu is this machine; others are {', '.join(names())}, or a triple such as "
        "aarch64-linux-gnu",
    )


def _processor(triple: str, cpu: str, features: str) -> tuple[str, ...]:
    abi = ("--iree-llvmcpu-target-abi=lp64d",) if triple.startswith("riscv64") else ()
    more = (f"--iree-llvmcpu-target-cpu-features={features}",) if features else ()
    return (
        f"--iree-llvmcpu-target-triple={triple}",
        f"--iree-llvmcpu-target-cpu={cpu}",
        *more,
        *abi,
    )


def _cuda(detail: str) -> tuple[str, ...]:
    arch = detail or CUDA_DEFAULT
    number = re.fullmatch(r"sm_(\d+)a?", arch)
    if number is None:
        raise UsageError(
            f"there is no target 'iree-cuda:{detail}'", hint="write it as NVIDIA does: sm_86"
        )
    if int(number[1]) >= CUDA_BY_ATTRIBUTE:
        return (f"--iree-hal-target-device={_hopper_attributes(arch)}", *SPEED, *WIDE)
    return ("--iree-hal-target-device=cuda", f"--iree-cuda-target={arch}", *SPEED, *WIDE)


def _hopper_attributes(arch: str) -> str:
    """Return the attributes of an NVIDIA GPU, from Hopper on."""
    threads = "max_workgroup_sizes = [1024, 1024, 1024], max_thread_count_per_workgroup = 1024"
    return (
        '#hal.device.target<"cuda", [#hal.executable.target<"cuda", "cuda-nvptx-fb", '
        f'{{iree_codegen.target_info = #iree_gpu.target<arch = "{arch}", features = "+ptx80", '
        "wgp = <compute = fp64|fp32|fp16|int64|int32|int16|int8, storage = b64|b32|b16|b8, "
        "subgroup = shuffle|arithmetic, dot = dp4xi8toi32, "
        "mma = [<NV_MMA_SYNC_F32_16x8x16_F16>, <NV_WMMA_F32_16x16x16_F16>], "
        f"subgroup_size_choices = [32], {threads}, max_workgroup_memory_bytes = 232448, "
        "max_workgroup_counts = [2147483647, 65535, 65535]>>}>]> : !hal.device"
    )


def _vulkan(detail: str) -> tuple[str, ...]:
    if detail:
        return ("--iree-hal-target-device=vulkan", f"--iree-vulkan-target={detail}", *SPEED)
    return (f"--iree-hal-target-device={_any_vulkan()}", *SPEED)


def _any_vulkan() -> str:
    """Describe a GPU that stores bytes, and has nothing else beyond what all have.

    IREE's own default stores words of 32 bits only, and then loses up to 3 bytes at the end of an
    array of bytes.
    """
    return (
        '#hal.device.target<"vulkan", [#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", '
        '{iree_codegen.target_info = #iree_gpu.target<arch = "vp_android_baseline_2022", '
        'features = "spirv:v1.3,cap:Shader", wgp = <compute = fp32|int32|int16|int8, '
        "storage = b64|b32|b16|b8, subgroup = none, subgroup_size_choices = [64], "
        "max_workgroup_sizes = [128, 128, 64], max_thread_count_per_workgroup = 128, "
        "max_workgroup_memory_bytes = 32768, max_workgroup_counts = [65535, 65535, 65535]>>}>]> "
        ": !hal.device"
    )


def _rocm(detail: str) -> tuple[str, ...]:
    arch = detail or ROCM_DEFAULT
    if not re.fullmatch(r"gfx[0-9a-f]{3,4}", arch):
        raise UsageError(
            f"there is no target 'iree-rocm:{detail}'", hint="write it as AMD does: gfx942"
        )
    return ("--iree-hal-target-device=hip", f"--iree-rocm-target={arch}", *SPEED, *WIDE)


def _metal(detail: str) -> tuple[str, ...]:
    if detail:
        raise UsageError(f"there is no target 'iree-metal:{detail}'", hint="it is iree-metal only")
    # Shaders stay source: Apple's compiler runs on Apple's machines only, which compile them.
    return ("--iree-hal-target-device=metal", "--iree-metal-compile-to-metallib=false", *SPEED)


DEVICES = {
    device.name: device
    for device in (
        Device("iree-cpu", ("local-sync", "local-task"), _cpu),
        Device("iree-cuda", ("cuda",), _cuda),
        Device("iree-vulkan", ("vulkan",), _vulkan),
        Device("iree-rocm", ("hip",), _rocm),
        Device("iree-metal", ("metal",), _metal),
    )
}
