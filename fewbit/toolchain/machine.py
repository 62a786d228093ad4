"""The processor and memory of this machine, as the kernels see them.

Features carry LLVM's names, because LLVM generates the code that uses them. What a platform does
not tell is left empty rather than guessed.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from fewbit.toolchain.llvm import host_features, host_processor

FEATURES_THAT_MATTER = (
    *("sse4.1", "avx", "avx2", "fma", "f16c", "avxvnni", "avxvnniint8"),
    *("avx512f", "avx512bw", "avx512vl", "avx512vbmi", "avx512vnni", "avx512vpopcntdq"),
    *("amx-tile", "amx-int8", "gfni"),
    *("neon", "dotprod", "i8mm", "sve", "sve2", "sme"),
    *("v", "zbb", "zvbb", "zvfh"),
)
"""The features that low-bit kernels can use; a processor has dozens of others."""


@dataclass(frozen=True)
class Machine:
    system: str
    architecture: str
    processor: str
    llvm_processor: str
    features: tuple[str, ...]
    cores: int
    caches: dict[str, int]
    """Bytes by name (`L1d`, `L1i`, `L2`, `L3`), of one instance each."""
    memory: int
    """Bytes of main memory; 0 where unknown."""


def this_machine() -> Machine:
    llvm_processor, features = _llvm_view()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        processor=_processor_name(),
        llvm_processor=llvm_processor,
        features=features,
        cores=_cores(),
        caches=_caches(),
        memory=_memory(),
    )


def _llvm_view() -> tuple[str, tuple[str, ...]]:
    try:
        present = host_features()
        return host_processor(), tuple(f for f in FEATURES_THAT_MATTER if f in present)
    except (ImportError, OSError, RuntimeError):
        return "", ()


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(named, platform.processor())


def _cores() -> int:
    """Return the cores this process may use, which in a container are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _caches() -> dict[str, int]:
    caches: dict[str, int] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (folder / name).read_text(encoding="utf-8").strip()
                for name in ("level", "type", "size")
            )
            caches[f"L{level}{_CACHE_SUFFIX[kind]}"] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError, KeyError):
            continue
    return caches


_CACHE_SUFFIX = {"Data": "d", "Instruction": "i", "Unified": ""}


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
