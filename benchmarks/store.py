"""How long a 1 GB weight store takes to open, and how much memory.

    python benchmarks/store.py [--json]

The store is made in a temporary folder and opened in a fresh process, which reads 16 rows of a
matrix. Resident memory is what the operating system reports for that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fewbit.program.store import WeightStore

LAYERS = 64
ROWS, COLUMNS = 4096, 4096  # 16 MB a layer, as packed 8-bit weights


def make(path: Path) -> None:
    store = WeightStore()
    block = np.random.default_rng(0).integers(0, 256, (ROWS, COLUMNS), dtype=np.uint8)
    for layer in range(LAYERS):
        block[0, 0] = layer
        store.add(f"layers.{layer}.weight", block)
        store.add(f"layers.{layer}.scale", np.full(ROWS, layer, np.float32))
    store.save(path)


def memory(field: str) -> float:
    """A field of this process's status, in MB (10^6 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"this operating system does not report {field}")


def measure(path: Path) -> dict[str, float]:
    """Open the store in this process."""
    before = memory("VmRSS")
    start = time.perf_counter()
    store = WeightStore.open(path)
    opened = time.perf_counter()
    total = int(store[f"layers.{LAYERS // 2}.weight"][:16].sum())
    sliced = time.perf_counter()
    assert total > 0
    return {
        "bytes": store.nbytes(),
        "open_seconds": opened - start,
        "slice_seconds": sliced - opened,
        "peak_megabytes": memory("VmHWM"),
        "growth_megabytes": memory("VmRSS") - before,
    }


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--measure"]:
        print(json.dumps(measure(Path(arguments[1]))))
        return
    with tempfile.TemporaryDirectory(prefix="fewbit-store-") as folder:
        path = Path(folder) / "weights.safetensors"
        start = time.perf_counter()
        make(path)
        made = time.perf_counter() - start
        command = [sys.executable, __file__, "--measure", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        store = WeightStore.open(path)
        start = time.perf_counter()
        store.verify_all()
        figures |= {"make_seconds": made, "verify_seconds": time.perf_counter() - start}
    if "--json" in arguments:
        print(json.dumps(figures))
        return
    print(f"store of                 {figures['bytes'] / 1e9:.2f} GB")
    print(f"made and saved in        {figures['make_seconds']:.2f} s")
    print(f"opened in                {figures['open_seconds'] * 1e3:.2f} ms")
    print(f"16 rows read in          {figures['slice_seconds'] * 1e3:.2f} ms")
    print(f"resident at most         {figures['peak_megabytes']:.0f} MB")
    print(f"grown by opening         {figures['growth_megabytes']:.1f} MB")
    print(f"every hash checked in    {figures['verify_seconds']:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
