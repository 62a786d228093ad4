"""LLVM for this machine: its processor, and object code for it."""

from __future__ import annotations

import platform
from pathlib import Path


def host_processor() -> str:
    """Return LLVM's name of this machine's processor."""
    from llvmlite import binding

    return binding.get_host_cpu_name()


def host_features() -> set[str]:
    """Return the processor's features that are present, by LLVM's names."""
    from llvmlite import binding

    present = {name for name, has in binding.get_host_cpu_features().items() if has}
    if platform.machine() in ("aarch64", "arm64") and "asimddp" in _flags():
        present.add("dotprod")  # LLVM does not ask Linux for it
    return present


def _flags() -> set[str]:
    """Return the processor's features by Linux's names."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {
        flag for line in text.splitlines() if line.startswith("Features") for flag in line.split()
    }


def emit_object(ir: str) -> bytes:
    """Compile LLVM IR to position-independent object code for this machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(reloc="pic")
    return machine.emit_object(binding.parse_assembly(ir))
