"""Speed of the generated kernels beside OpenBLAS and onnxruntime: `python benchmarks/kernels.py`.

One thread. Times are the minimum of the process's CPU time over interleaved rounds, so other work
on the machine disturbs ratios little. The peak is that of this processor, measured in the same
rounds. onnxruntime is asked for single layers, which it reorders to and from its own layout; that
is part of its time here, and not in a whole model. Without it, its column stays empty.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from llvmlite import binding

from fewbit.cost.cpu.probes import SUMS, FloatPeak, Repeated
from fewbit.kernels import Conv2d, Depthwise, Isa, Kernel, Matmul, PackB, module_text
from fewbit.kernels.pack import packed_size

SIGNATURES = {
    "fewbit_matmul_f32": "pippppiiiiffii",
    "fewbit_pack_b_f32": "piipiiii",
    "fewbit_conv2d_f32_repeated": "ppppppffiii",
    "fewbit_depthwise_f32_repeated": "ppppppffiii",
    "fewbit_float_peak": "pi",
}
INF = float("inf")


@dataclass(frozen=True)
class Layer:
    """A convolution of a square image, padded to keep its size at stride 1."""

    h: int
    w: int
    c: int
    oc: int
    kh: int
    kw: int
    stride: int = 1
    depthwise: bool = False
    times: int = 1

    @property
    def pads(self) -> tuple[int, int]:
        return (self.kh - 1) // 2, (self.kw - 1) // 2

    @property
    def out(self) -> tuple[int, int]:
        (top, left), s = self.pads, self.stride
        return (self.h + 2 * top - self.kh) // s + 1, (self.w + 2 * left - self.kw) // s + 1

    @property
    def macs(self) -> int:
        return (
            self.out[0]
            * self.out[1]
            * self.oc
            * self.kh
            * self.kw
            * (1 if self.depthwise else self.c)
        )

    def __str__(self) -> str:
        kind = "dw" if self.depthwise else "  "
        return f"{kind} {self.h}x{self.w}x{self.c:<4} {self.kh}x{self.kw}/{self.stride} {self.oc}"


def square(size: int, c: int, oc: int, k: int, stride: int = 1, times: int = 1) -> Layer:
    return Layer(size, size, c, oc, k, k, stride, times=times)


def inverted(size: int, c: int, oc: int, expand: int, stride: int, times: int = 1) -> list[Layer]:
    """MobileNetV2's block: pointwise, depthwise, pointwise."""
    hidden, after = c * expand, size // stride
    first = [square(size, c, hidden, 1, times=times)] if expand > 1 else []
    middle = Layer(size, size, hidden, hidden, 3, 3, stride, True, times)
    return [*first, middle, square(after, hidden, oc, 1, times=times)]


MODELS: dict[str, list[Layer]] = {
    "ResNet-18": [
        square(224, 3, 64, 7, 2),
        square(56, 64, 64, 3, times=4),
        square(56, 64, 128, 3, 2),
        square(56, 64, 128, 1, 2),
        square(28, 128, 128, 3, times=3),
        square(28, 128, 256, 3, 2),
        square(28, 128, 256, 1, 2),
        square(14, 256, 256, 3, times=3),
        square(14, 256, 512, 3, 2),
        square(14, 256, 512, 1, 2),
        square(7, 512, 512, 3, times=3),
    ],
    "ResNet-8": [
        square(32, 3, 16, 3),
        square(32, 16, 16, 3, times=2),
        square(32, 16, 32, 3, 2),
        square(32, 16, 32, 1, 2),
        square(16, 32, 32, 3),
        square(16, 32, 64, 3, 2),
        square(16, 32, 64, 1, 2),
        square(8, 64, 64, 3),
    ],
    "MobileNetV2": [
        square(224, 3, 32, 3, 2),
        *inverted(112, 32, 16, 1, 1),
        *inverted(112, 16, 24, 6, 2),
        *inverted(56, 24, 24, 6, 1),
        *inverted(56, 24, 32, 6, 2),
        *inverted(28, 32, 32, 6, 1, times=2),
        *inverted(28, 32, 64, 6, 2),
        *inverted(14, 64, 64, 6, 1, times=3),
        *inverted(14, 64, 96, 6, 1),
        *inverted(14, 96, 96, 6, 1, times=2),
        *inverted(14, 96, 160, 6, 2),
        *inverted(7, 160, 160, 6, 1, times=2),
        *inverted(7, 160, 320, 6, 1),
        square(7, 320, 1280, 1),
    ],
    "DS-CNN": [
        Layer(49, 10, 1, 64, 10, 4, 2),
        Layer(24, 5, 64, 64, 3, 3, 1, True, times=4),
        Layer(24, 5, 64, 64, 1, 1, times=4),
    ],
}
PRODUCTS = [(512, 512, 512), (768, 768, 768), (1024, 1024, 1024), (1000, 777, 333), (513, 513, 513)]


def float_kernels(isa: Isa) -> list[Kernel]:
    images = [Repeated(isa, kind(isa)) for kind in (Conv2d, Depthwise)]
    return [Matmul(isa), PackB(isa), *images, FloatPeak(isa)]


def compile_all(
    kernels: list[Kernel], isa: Isa, signatures: dict[str, str]
) -> tuple[dict[str, Callable[..., None]], float]:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    start = time.process_time()
    module = binding.parse_assembly(module_text(kernels, isa))
    machine = binding.Target.from_triple(isa.triple).create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic"
    )
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    spent = time.process_time() - start
    types = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_float}
    calls: dict[str, Any] = {}
    for kernel in kernels:
        prototype = ctypes.CFUNCTYPE(None, *(types[t] for t in signatures[kernel.symbol]))
        calls[kernel.symbol] = prototype(engine.get_function_address(kernel.symbol))
        calls[kernel.symbol].engine = engine
    return calls, spent


def fastest(*works: Callable[[], object], budget: float = 0.4) -> list[float]:
    """Return each work's minimum CPU time; they take turns, about `budget` seconds in all."""
    for work in works:
        work()
    best = [INF] * len(works)
    stop = time.process_time() + budget
    while time.process_time() < stop:
        for i, work in enumerate(works):
            repeats = max(1, min(100, int(2e-4 / best[i]))) if best[i] < INF else 1
            start = time.process_time()
            for _ in range(repeats):
                work()
            best[i] = min(best[i], (time.process_time() - start) / repeats)
    return best


def aligned(values: np.ndarray) -> np.ndarray:
    room = np.empty(values.nbytes + 64, np.int8)
    start = -room.ctypes.data % 64
    copy = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


class Bench:
    def __init__(self, isa: Isa, ort: bool) -> None:
        self.isa = isa
        self.calls, seconds = compile_all(float_kernels(isa), isa, SIGNATURES)
        print(f"{isa.name} ({isa.cpu}): all kernels compiled in {seconds:.2f} s")
        self.rng = np.random.default_rng(0)
        self.ort = ort
        self.room = aligned(np.full(isa.lanes * SUMS, 0.5, np.float32))

    def fastest(self, *works: Callable[[], object], budget: float = 0.4) -> list[float]:
        """Return minimum times; the peak is measured in the same rounds, because clocks change."""
        steps, at = 20000, self.room.ctypes.data
        *best, spent = fastest(
            *works, lambda: self.calls["fewbit_float_peak"](at, steps), budget=budget
        )
        self.peak = steps * FloatPeak(self.isa).macs / spent / 1e9
        return best

    def floats(self, *shape: int) -> np.ndarray:
        return aligned(self.rng.standard_normal(shape, np.float32))

    def row(self, name: str, macs: int, ours: float, peer: float | None) -> None:
        ratio = f"{peer / ours:6.2f}" if peer is not None else "      "
        rate = macs / ours / 1e9
        print(
            f"{name:<28} {ours * 1e6:>9.1f} us {rate:>6.1f} GMAC/s {rate / self.peak:>5.2f} {ratio}"
        )

    def matmul(self, m: int, n: int, k: int) -> None:
        a, b, c = self.floats(m, k), self.floats(k, n), self.floats(m, n)
        packed = aligned(np.zeros(packed_size(k, n, self.isa), np.float32))
        to = aligned(np.zeros((m, n), np.float32))
        at = [v.ctypes.data for v in (a, b, c, packed)]

        def ours() -> None:
            self.calls["fewbit_pack_b_f32"](at[1], n, 1, at[3], k, n, 0, 1)
            self.calls["fewbit_matmul_f32"](
                at[0], k, at[3], None, None, at[2], n, m, n, k, -INF, INF, 0, 1
            )

        best = self.fastest(ours, lambda: np.matmul(a, b, out=to), budget=1.0)
        assert np.allclose(c, to, rtol=1e-3, atol=1e-3)
        self.row(f"{m} x {n} x {k}", m * n * k, *best)

    def vector(self, n: int, k: int) -> None:
        a, w, c = self.floats(1, k), self.floats(n, k), self.floats(1, n)
        packed = aligned(Matmul(self.isa).pack(w))
        at = [v.ctypes.data for v in (a, packed, c)]
        best = self.fastest(
            lambda: self.calls["fewbit_matmul_f32"](
                at[0], k, at[1], None, None, at[2], n, 1, n, k, -INF, INF, 0, 1
            ),
            lambda: np.dot(w, a[0]),
        )
        self.row(f"1 x {n} x {k}", n * k, *best)
        print(f"{'':<28} {n * k * 4 / best[0] / 1e9:.1f} GB/s")

    def layer(self, layer: Layer) -> tuple[float, float | None]:
        (oh, ow), depth = layer.out, 1 if layer.depthwise else layer.c
        x = self.floats(1, layer.h, layer.w, layer.c)
        weight, bias = self.floats(layer.oc, depth, layer.kh, layer.kw), self.floats(layer.oc)
        y = aligned(np.zeros((1, oh, ow, layer.oc), np.float32))
        kernel = (Depthwise if layer.depthwise else Conv2d)(self.isa)
        packed = aligned(kernel.pack(weight))
        sizes = np.array(
            [1, layer.h, layer.w, layer.c, layer.c, oh, ow, layer.oc, layer.oc, layer.kh, layer.kw]
            + [layer.stride] * 2 + [*layer.pads, 1, 1]
        )  # fmt: skip
        at = [v.ctypes.data for v in (x, packed, bias)]
        to = [y.ctypes.data, sizes.ctypes.data]
        call = self.calls[Repeated(self.isa, kernel).symbol]
        repeats = max(1, 10_000_000 // layer.macs)
        works: list[Callable[[], object]] = [lambda: call(*at, None, *to, 0.0, INF, 0, 1, repeats)]
        if self.ort:
            session = onnx_layer(layer, weight, bias)
            image = {"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2))}
            works.append(lambda: session.run(None, image))
            expected = session.run(None, image)[0].transpose(0, 2, 3, 1)
            works[0]()
            assert np.allclose(y, expected, rtol=1e-3, atol=1e-3), layer
        best = self.fastest(*works)
        ours, peer = best[0] / repeats, best[1] if self.ort else None
        self.row(f"{layer} *{layer.times}", layer.macs, ours, peer)
        return ours, peer

    def model(self, name: str) -> None:
        print(f"\n{name}")
        ours, peers, macs, peak = 0.0, 0.0, 0, 0.0
        for layer in MODELS[name]:
            mine, peer = self.layer(layer)
            ours, peers = ours + mine * layer.times, peers + (peer or 0.0) * layer.times
            macs += layer.macs * layer.times
            peak = max(peak, self.peak)
        self.peak = peak
        self.row("sum of its layers", macs, ours, peers if self.ort else None)


def onnx_layer(layer: Layer, weight: np.ndarray, bias: np.ndarray):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    (top, left), groups = layer.pads, layer.c if layer.depthwise else 1
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], strides=[layer.stride] * 2, group=groups,
            pads=[top, left, top, left], kernel_shape=[layer.kh, layer.kw],
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]  # fmt: skip
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, layer.c, layer.h, layer.w])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, layer.oc, *layer.out])
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "layer", [given], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def has_onnxruntime() -> bool:
    if find_spec("onnx") and find_spec("onnxruntime"):
        return True
    print("onnxruntime or onnx is not installed: no comparison of convolutions")
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isa", default="host")
    parser.add_argument("--only", nargs="*", default=["matmuls", "vectors", *MODELS])
    options = parser.parse_args()
    bench = Bench(Isa.of(options.isa), has_onnxruntime())
    print(f"{'':<28} {'time':>12} {'rate':>13} {'/peak':>5} {'/peer':>6}")
    if "matmuls" in options.only:
        print("matmuls, with the packing of b; the peer is numpy's OpenBLAS")
        for size in PRODUCTS:
            bench.matmul(*size)
    if "vectors" in options.only:
        print("vectors")
        for n, k in ((512, 512), (1000, 512), (4096, 1024), (4096, 4096)):
            bench.vector(n, k)
    for name in MODELS:
        if name in options.only:
            bench.model(name)


if __name__ == "__main__":
    main()
