"""The processor of this machine, as a description: what it says of itself, and what is measured.

Speeds that were not measured are those of the cost model's calibration, or its defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.base.cache import cache_folder
from fewbit.cost.cpu.calibration import Bounds
from fewbit.cost.cpu.store import load_calibration
from fewbit.cost.hardware.description import Hardware, Memory, read_hardware, to_toml
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.machine import Machine, this_machine

if TYPE_CHECKING:
    from fewbit.cost.cpu.measure import Timer

ROUNDS = 9
UNKNOWN_CACHES = {"L1d": 32 << 10, "L2": 512 << 10, "L3": 8 << 20}
"""Sizes in bytes, where a machine does not report them."""
SHARED, MAIN = "L3", "memory"
UNITS = 2.0
LATENCY = 4.0
"""Cycles; what processors with vectors have had for ten years."""
LARGEST = 64 << 20
"""Bytes that are read to measure main memory, unless the last cache holds them."""
PEAK_TURNS = 2000


def host_path() -> Path:
    """Return the file that `fewbit doctor --hardware` writes and searches read."""
    return cache_folder() / "hardware" / f"{host_name()}.toml"


def host_name() -> str:
    machine = this_machine()
    name = re.sub(r"\W+", "-", machine.processor or machine.llvm_processor or "cpu").strip("-")
    return name.lower()


@cache
def host() -> Hardware:
    """Return this machine as it was measured, or else as it is known without."""
    path = host_path()
    if path.is_file():
        return read_hardware(path)
    return describe(load_calibration().bounds(), measured=False)


def describe(bounds: Bounds, *, measured: bool) -> Hardware:
    """Return this machine with given speeds."""
    machine, isa = this_machine(), Isa.host()
    sizes = memory_sizes(machine)
    footprints = measured_footprints(sizes)
    memories = tuple(
        Memory(name=name, bytes=size, bytes_per_second=bounds.bandwidth(footprints[name]))
        for name, size in sizes.items()
    )
    return Hardware(
        name=host_name(),
        kind="cpu",
        clock_hz=bounds.macs["f32"] / (UNITS * isa.lanes),
        cores=machine.cores,
        vector_bits=isa.vector_bits,
        registers=isa.registers,
        multipliers=UNITS,
        loads=UNITS,
        latency=LATENCY,
        measured=measured,
        source="this machine",
        memories=memories,
    )


def measure_host() -> Hardware:
    """Measure the bandwidths and the clock of this machine, in a few seconds."""
    from fewbit.cost.cpu.calibration import Read
    from fewbit.cost.cpu.measure import Bench
    from fewbit.cost.cpu.probes import FloatPeak

    isa = Isa.host()
    footprints = sorted(measured_footprints(memory_sizes(this_machine())).values())
    bench, peak = Bench(isa, max(footprints), written_bytes=LARGEST), FloatPeak(isa)
    times: list[tuple[int, float]] = []
    for size in footprints:
        time = _least(bench.read(size)) / size
        times.append((size, max(time, times[-1][1]) if times else time))
    macs = PEAK_TURNS * peak.macs / _least(bench.peak(peak, PEAK_TURNS))
    return describe(Bounds({"f32": macs}, Read(tuple(times))), measured=True)


def memory_sizes(machine: Machine) -> dict[str, int]:
    """Return the bytes of a machine's memories, the fastest first."""
    caches = {name: machine.caches.get(name) or size for name, size in UNKNOWN_CACHES.items()}
    return {**caches, MAIN: machine.memory or 1 << 33}


def measured_footprints(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes to read to measure each memory.

    The last cache is shared with others, and of a virtual machine it may be that of a whole socket.
    """
    within = {name: size * 3 // 4 for name, size in sizes.items()}
    last = sizes[SHARED]
    main = min(max(LARGEST, 2 * last), sizes[MAIN] // 8)
    return {**within, SHARED: min(last, main) // 3, MAIN: main}


def _least(timer: Timer) -> float:
    return min(timer.seconds() for _ in range(ROUNDS))


def write_host(hardware: Hardware) -> Path:
    from fewbit.base.files import replacing_file

    path = host_path()
    with replacing_file(path) as file:
        file.write(to_toml(hardware).encode())
    host.cache_clear()
    return path
