"""Seconds to pack and unpack 100 M values at every width: `python benchmarks/packing.py`."""

from __future__ import annotations

import argparse
import time

import numpy as np

from fewbit.numerics import WIDTHS, Width, pack, unpack


def seconds(width: Width, rows: int, k: int) -> tuple[float, float]:
    values = np.random.default_rng(0).integers(width.qmin, width.qmax + 1, (rows, k), np.int8)
    if width.is_binary:
        values[values == 0] = 1
    start = time.perf_counter()
    packed = pack(values, width)
    middle = time.perf_counter()
    unpacked = unpack(packed, width, k)
    end = time.perf_counter()
    if not np.array_equal(values, unpacked):
        raise SystemExit(f"unpack(pack(u)) != u at {width} bits, K = {k}")
    return middle - start, end - middle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=100_000_000)
    parser.add_argument("--k", type=int, nargs="+", default=[4096, 1000, 25])
    options = parser.parse_args()
    print(f"{'K':>8} {'width':>6} {'pack s':>8} {'unpack s':>9}")
    for k in options.k:
        for width in WIDTHS:
            packing, unpacking = seconds(width, options.values // k, k)
            print(f"{k:>8} {width!s:>6} {packing:>8.3f} {unpacking:>9.3f}", flush=True)


if __name__ == "__main__":
    main()
