"""Speed of matmuls with few-bit weights: `python benchmarks/few_bit_kernels.py`.

One thread, CPU time, as in kernels.py. Activations are floats that are quantized to 8 bits row by
row, outputs are floats; both are part of the time. A GEMV is bound by the memory
that its weights take: the bound is the time to read as many bytes, or that of the processor's dot
products, if it is longer. A GEMM is bound by the latter alone. Bounds are measured in the
same rounds. Where onnxruntime is installed, `--ort` adds its MatMulNBits, in blocks of 128, at the
widths that it has.

Pairs of 1 and 2 bits follow, by popcount: of bytes that are quantized, so only the matmul is
timed, beside the kernel of bytes with weights of the same width.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import kernels as floats
import numpy as np
from kernels import INF, aligned

from fewbit.cost.cpu.probes import SUMS, BytePeak, Read
from fewbit.kernels import BitMatmul, IntegerMatmul, Isa, Kernel, QuantizeRows

WIDTHS = (8, 7, 6, 5, 4, 3, 2, 1)
PAIRS = ((1, 1), (2, 1), (1, 2))
"""Bits of weights and of activations."""
GROUP = 128
ORT_WIDTHS = (8, 4, 2)


class Bench:
    def __init__(self, isa: Isa, n: int, k: int, ort: bool) -> None:
        self.isa, self.n, self.k, self.ort = isa, n, k, ort
        self.rng = np.random.default_rng(0)
        self.room = aligned(np.zeros(isa.lanes * SUMS, np.int32))

    def numbers(self, shape: tuple[int, int], bits: int) -> np.ndarray:
        most = 1 << bits >> 1
        some = (
            self.rng.choice([-1, 1], shape) if bits == 1 else self.rng.integers(-most, most, shape)
        )
        return some.astype(np.int8)

    def row(self, m: int, bits: int, grouped: bool) -> None:
        n, k, groups = self.n, self.k, self.k // GROUP if grouped else 1
        kernel, quantize = IntegerMatmul(self.isa, "f32", bits, grouped), QuantizeRows(self.isa)
        calls, _ = floats.compile_all(
            [kernel, quantize, BytePeak(self.isa), Read(self.isa)],
            self.isa,
            {
                kernel.symbol: "pippippppiiii" + "i" * grouped + "ffii",
                quantize.symbol: "pipipiiii",
                "fewbit_byte_peak": "pi",
                "fewbit_read": "pip",
            },
        )
        packed = aligned(kernel.pack(self.numbers((n, k), bits), groups))
        scale = aligned(kernel.pack_scale(self.rng.random((n, groups), np.float32)))
        x = aligned(self.rng.standard_normal((m, k), np.float32))
        q, x_scale = aligned(np.zeros((m, k), np.int8)), np.zeros(m, np.float32)
        y = aligned(np.zeros((m, n), np.float32))
        at = [v.ctypes.data for v in (x, q, x_scale, packed, scale, y, self.room)]
        more = [groups] if grouped else []

        def ours() -> None:
            calls[quantize.symbol](at[0], k, at[1], k, at[2], m, k, 0, 1)
            calls[kernel.symbol](
                at[1], k, at[3], at[2], 1, at[4], None, None, at[5], n, m, n, k, *more, -INF, INF,
                0, 1,
            )  # fmt: skip

        steps = 20000
        works: list[Callable[[], object]] = [
            ours,
            lambda: calls["fewbit_read"](at[3], packed.nbytes, at[6]),
            lambda: calls["fewbit_byte_peak"](at[6], steps),
        ]
        if self.ort and grouped and bits in ORT_WIDTHS:
            works.append(onnx_matmul(bits, x, n, k))
        spent, read, dots, *peer = floats.fastest(*works, budget=1.5)
        macs = m * n * k
        peak = steps * BytePeak(self.isa).macs / dots
        bound = max(read, macs / peak) if m == 1 else macs / peak
        print(
            f"{m:>4} {f'W{bits}A8' + (f' g{GROUP}' if grouped else ''):<10} {spent * 1e6:>8.0f} us "
            f"{packed.nbytes / spent / 1e9:>6.1f} GB/s {macs / spent / 1e9:>6.0f} GMAC/s "
            f"{bound / spent:>5.2f} " + "".join(f"{other / spent:>6.2f}" for other in peer),
            flush=True,
        )

    def pair(self, m: int, w_bits: int, x_bits: int) -> None:
        n, k = self.n, self.k
        kernels = (
            BitMatmul(self.isa, "f32", x_bits, w_bits),
            IntegerMatmul(self.isa, "f32", w_bits),
        )
        signatures = {kernel.symbol: "pippippppiiiiffii" for kernel in kernels}
        calls, _ = floats.compile_all([*kernels], self.isa, signatures)
        weight, x = self.numbers((n, k), w_bits), aligned(self.numbers((m, k), x_bits))
        x_scale, w_scale = np.ones(m, np.float32), aligned(np.ones(n, np.float32))
        y = aligned(np.zeros((m, n), np.float32))
        packed = [aligned(kernel.pack(weight)) for kernel in kernels]

        def work(kernel: Kernel, w: np.ndarray):
            at = [v.ctypes.data for v in (x, w, x_scale, w_scale, y)]
            return lambda: calls[kernel.symbol](
                at[0], k, at[1], at[2], 1, at[3], None, None, at[4], n, m, n, k, -INF, INF, 0, 1
            )

        spent, bytes_ = floats.fastest(*map(work, kernels, packed), budget=1.5)
        print(
            f"{m:>4} {f'W{w_bits}A{x_bits}':<10} {spent * 1e6:>8.0f} us "
            f"{packed[0].nbytes / spent / 1e9:>6.1f} GB/s {m * n * k / spent / 1e9:>6.0f} GMAC/s "
            f"{bytes_ / spent:>5.2f} times as fast as bytes",
            flush=True,
        )


def onnx_matmul(bits: int, x: np.ndarray, n: int, k: int):
    """Return onnxruntime's matmul of floats, quantized to 8 bits, with blocks of weights."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rng, blocks = np.random.default_rng(0), k // GROUP
    packed = rng.integers(0, 256, (n, blocks, GROUP * bits // 8), np.uint8)
    scale = rng.random((n * blocks,), np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
        block_size=GROUP, accuracy_level=4,
    )  # fmt: skip
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [node], "product", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, (len(x), n))],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scale, "s")],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda: session.run(None, {"x": x})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isa", default="host")
    parser.add_argument("--size", type=int, nargs=2, default=[4096, 4096], metavar=("N", "K"))
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 128])
    parser.add_argument("--bits", type=int, nargs="*", default=WIDTHS)
    parser.add_argument("--ort", action="store_true")
    options = parser.parse_args()
    bench = Bench(Isa.of(options.isa), options.size[0], options.size[1], options.ort)
    print(
        f"{'rows':>4} {'':<10} {'time':>11} {'weights':>11} {'rate':>13} {'/bound':>6} {'/ort':>5}"
    )
    for m in options.rows:
        for grouped in (False, True):
            for bits in options.bits:
                bench.row(m, bits, grouped)
        for pair in PAIRS:
            bench.pair(m, *pair)


if __name__ == "__main__":
    main()
