"""Speed of the kernels on integers beside those on floats: `python benchmarks/integer_kernels.py`.

One thread, CPU time, as in kernels.py. The peak is that of this processor's dot product of bytes,
the ratio is to the float kernel of the same size, both measured in the same rounds. Outputs are
floats, with scales, bias and ReLU, unless `--output` says otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import kernels as floats
import numpy as np
from kernels import INF, MODELS, Layer, aligned

from fewbit.cost.cpu.probes import SUMS, BytePeak, Repeated
from fewbit.kernels import (
    Conv2d,
    Depthwise,
    IntegerConv2d,
    IntegerDepthwise,
    IntegerMatmul,
    Isa,
    Kernel,
    Matmul,
)
from fewbit.kernels.integer.output import Output

PRODUCTS = [
    (128, 4096, 4096),
    (3136, 64, 576),
    (784, 128, 1152),
    (196, 256, 2304),
    (49, 512, 4608),
    (1, 4096, 4096),
    (1, 1024, 1024),
]
TYPES = {"f32": np.float32, "i32": np.int32, "i8": np.int8}


class Bench:
    def __init__(self, isa: Isa, output: Output) -> None:
        self.isa, self.output = isa, output
        images = [Repeated(isa, kind(isa, output)) for kind in (IntegerConv2d, IntegerDepthwise)]
        self.kernel = IntegerMatmul(isa, output)
        float_matmul = Repeated(isa, Matmul(isa))
        signatures = {
            **floats.SIGNATURES,
            "fewbit_matmul_f32_repeated": "pippppiiiiffiii",
            f"fewbit_matmul_i8_{output}_repeated": "pippippppiiiiffiii",
            f"fewbit_conv2d_i8_{output}_repeated": "pppipppppffiii",
            f"fewbit_depthwise_i8_{output}_repeated": "pppipppppffiii",
            "fewbit_byte_peak": "pi",
        }
        kernels: list[Kernel] = [Repeated(isa, self.kernel), *images, BytePeak(isa)]
        self.calls, seconds = floats.compile_all(kernels, isa, signatures)
        others, _ = floats.compile_all([*floats.float_kernels(isa), float_matmul], isa, signatures)
        self.calls |= others
        print(f"{isa.name} ({isa.cpu}), {output}: integer kernels compiled in {seconds:.2f} s")
        self.rng = np.random.default_rng(0)
        self.room = aligned(np.zeros(isa.lanes * SUMS, np.int32))

    def fastest(self, *works: Callable[[], object], budget: float = 0.4) -> list[float]:
        steps, at = 20000, self.room.ctypes.data
        peak = self.calls["fewbit_byte_peak"]
        *best, spent = floats.fastest(*works, lambda: peak(at, steps), budget=budget)
        self.peak = steps * BytePeak(self.isa).macs / spent / 1e9
        return best

    def integers(self, *shape: int) -> np.ndarray:
        return aligned(self.rng.integers(-128, 128, shape).astype(np.int8))

    def row(self, name: str, macs: int, ours: float, other: float) -> None:
        rate = macs / ours / 1e9
        print(
            f"{name:<28} {ours * 1e6:>9.1f} us {rate:>6.1f} GMAC/s {rate / self.peak:>5.2f} "
            f"{other / ours:>6.2f}"
        )

    def scales(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kind = np.int32 if self.output == "i8" else np.float32
        return np.ones(1, np.float32), np.full(n, 1e-4, np.float32), np.ones(n, kind)

    def matmul(self, m: int, n: int, k: int) -> None:
        x, w, y = self.integers(m, k), self.integers(n, k), np.zeros((m, n), TYPES[self.output])
        packed, (x_scale, w_scale, bias) = aligned(self.kernel.pack(w)), self.scales(n)
        fx, fw = aligned(x.astype(np.float32)), aligned(Matmul(self.isa).pack(w.astype(np.float32)))
        fy = aligned(np.zeros((m, n), np.float32))
        at = [v.ctypes.data for v in (x, packed, x_scale, w_scale, bias, y, fx, fw, fy)]
        call, other = (
            self.calls[f"{symbol}_repeated"] for symbol in (self.kernel.symbol, "fewbit_matmul_f32")
        )
        repeats = max(1, 10_000_000 // (m * n * k))
        best = self.fastest(
            lambda: call(
                at[0], k, at[1], at[2], m, at[3], at[4], None, at[5], n, m, n, k, 0.0, INF, 0, 1,
                repeats,
            ),
            lambda: other(
                at[6], k, at[7], None, None, at[8], n, m, n, k, 0.0, INF, 0, 1, repeats
            ),
            budget=1.0,
        )  # fmt: skip
        self.row(f"{m} x {n} x {k}", m * n * k, *(b / repeats for b in best))
        if m == 1:
            print(f"{'':<28} {n * k / best[0] * repeats / 1e9:.1f} GB/s")

    def layer(self, layer: Layer) -> tuple[float, float]:
        (oh, ow), depth = layer.out, 1 if layer.depthwise else layer.c
        x = self.integers(1, layer.h, layer.w, layer.c)
        weight = self.integers(layer.oc, depth, layer.kh, layer.kw)
        y = aligned(np.zeros((1, oh, ow, layer.oc), TYPES[self.output]))
        fy = aligned(np.zeros((1, oh, ow, layer.oc), np.float32))
        kernel = (IntegerDepthwise if layer.depthwise else IntegerConv2d)(self.isa, self.output)
        other = (Depthwise if layer.depthwise else Conv2d)(self.isa)
        packed, (x_scale, w_scale, bias) = aligned(kernel.pack(weight)), self.scales(layer.oc)
        fx, fw = aligned(x.astype(np.float32)), aligned(other.pack(weight.astype(np.float32)))
        sizes = np.array(
            [1, layer.h, layer.w, layer.c, layer.c, oh, ow, layer.oc, layer.oc, layer.kh, layer.kw]
            + [layer.stride] * 2 + [*layer.pads, 1, 1]
        )  # fmt: skip
        float_bias = np.ones(layer.oc, np.float32)
        arrays = (x, packed, x_scale, w_scale, bias, y, sizes, fx, fw, fy, float_bias)
        at = [v.ctypes.data for v in arrays]
        call, peer = (self.calls[Repeated(self.isa, k).symbol] for k in (kernel, other))
        repeats = max(1, 10_000_000 // layer.macs)
        best = self.fastest(
            lambda: call(
                at[0], at[1], at[2], oh * ow, at[3], at[4], None, at[5], at[6], 0.0, INF, 0, 1,
                repeats,
            ),
            lambda: peer(at[7], at[8], at[10], None, at[9], at[6], 0.0, INF, 0, 1, repeats),
        )  # fmt: skip
        mine, its = (b / repeats for b in best)
        self.row(f"{layer} *{layer.times}", layer.macs, mine, its)
        return mine, its

    def model(self, name: str) -> None:
        print(f"\n{name}")
        ours, its, macs, peak = 0.0, 0.0, 0, 0.0
        for layer in MODELS[name]:
            mine, other = self.layer(layer)
            ours, its = ours + mine * layer.times, its + other * layer.times
            macs, peak = macs + layer.macs * layer.times, max(peak, self.peak)
        self.peak = peak
        self.row("sum of its layers", macs, ours, its)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isa", default="host")
    parser.add_argument("--output", default="f32", choices=list(TYPES))
    parser.add_argument("--only", nargs="*", default=["matmuls", *MODELS])
    options = parser.parse_args()
    bench = Bench(Isa.of(options.isa), options.output)
    print(f"{'':<28} {'time':>12} {'rate':>13} {'/peak':>5} {'/float':>6}")
    if "matmuls" in options.only:
        for size in PRODUCTS:
            bench.matmul(*size)
    for name in MODELS:
        if name in options.only:
            bench.model(name)


if __name__ == "__main__":
    main()
