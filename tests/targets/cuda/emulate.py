"""Executes plans for GPUs on the processor: generated loops as the C++ that they are, compiled by the
machine's own compiler; layers by torch, from their description in the plan."""
# pyright: basic

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewbit.kernels.cuda.convolution import Convolution
from fewbit.targets.cuda.compilation import Compilation

COMPILER = shutil.which("g++") or shutil.which("clang++")
DRIVE = """
#include <utility>
thread_local u64 THREAD;
template <class... A, size_t... I>
void go(void (*f)(A...), void** a, u64 n, std::index_sequence<I...>) {
  for (THREAD = 0; THREAD < n; THREAD++) f((A)a[I]...);
}
template <class... A> void all(void (*f)(A...), void** a, u64 n) { go(f, a, n, std::index_sequence_for<A...>()); }
"""
DTYPES = {"f32": np.float32, "tf32": np.float32, "f16": np.float16, "i8": np.int8, "i32": np.int32}


class Emulated:
    """A program whose buffers are arrays; outputs and the arena start as rubbish."""

    def __init__(self, made: Compilation, where: Path) -> None:
        self.made, self.steps = made, made.assembly.described
        self.memory = {
            name: np.full(buffer.bytes + 64, 0xA5, np.uint8)
            for name, buffer in made.assembly.buffers().items()
        }
        weights = np.frombuffer(made.assembly.weights.tobytes(), np.uint8)
        self.memory["weights"][: weights.size] = weights
        self.loops = _compile(made.assembly.source(), made.assembly.kernels.values(), where)

    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        for i, array in enumerate(inputs):
            data = np.ascontiguousarray(array).view(np.uint8).ravel()
            self.memory[f"in{i}"][: data.size] = data
        for step in self.steps:
            if step["step"] == "loops":
                self._loops(step)
            else:
                self._layer(step)
        specs = self.made.signature.outputs
        return tuple(
            self._array(f"out{i}", 0, spec.dtype, shape).copy()
            for i, (spec, shape) in enumerate(zip(specs, self.made.outputs, strict=True))
        )

    def _array(self, buffer: str, offset: int, dtype: Any, shape: Any) -> np.ndarray:
        count = int(np.prod(shape))
        size = np.dtype(dtype).itemsize * count
        return self.memory[buffer][offset : offset + size].view(dtype).reshape(shape)

    def _loops(self, step: dict[str, Any]) -> None:
        places = step["operands"].values()
        addresses = [self.memory[buffer].ctypes.data + offset for buffer, offset in places]
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        getattr(self.loops, f"run_{step['kernel']}")(given, ctypes.c_ulonglong(step["threads"]))

    def _layer(self, step: dict[str, Any]) -> None:
        p = Convolution.parse(step["problem"]).of(step["dtype"], "nhwc")
        buffers = p.buffers()
        shapes = {n: b.shape for n, b in buffers.items()} | {"bias": (p.filters,)}
        shapes["add"] = shapes["y"]
        dtypes = {n: DTYPES[b.dtype] for n, b in buffers.items()} | {"bias": np.float32}
        dtypes["add"] = dtypes["y"]
        if step["step"] == "max_pool":
            dtypes["y"] = dtypes["x"]
        if step["kernel"] == "depthwise":
            shapes["w"] = (p.kh, p.kw, p.channels)
            dtypes["w"] = np.int32 if p.dtype == "i8" else np.float32
        got = {
            n: self._array(at[0], at[1], dtypes[n], shapes[n]) for n, at in step["operands"].items()
        }
        x = torch.from_numpy(got["x"].copy()).double().permute(0, 3, 1, 2)
        if step["step"] == "max_pool":
            y = torch.nn.functional.max_pool2d(x, (p.kh, p.kw), p.stride, p.padding)
        else:
            w = torch.from_numpy(got["w"].copy()).double()
            w = w.permute(2, 0, 1)[:, None] if w.ndim == 3 else w.permute(0, 3, 1, 2)
            y = torch.nn.functional.conv2d(x, w, None, p.stride, p.padding, p.dilation, p.groups)
        y = y.permute(0, 2, 3, 1)
        if "bias" in got:
            y = y + torch.from_numpy(got["bias"].copy()).double()
        if "add" in got:
            y = y + torch.from_numpy(got["add"].copy()).double()
        low, high = step["bounds"]
        got["y"][...] = y.clamp(low, high).numpy() if (low, high) != (None, None) else y.numpy()


def _compile(source: str, symbols: Iterable[str], where: Path) -> ctypes.CDLL:
    runs = "\n".join(
        f'extern "C" void run_{s}(void** a, u64 n) {{ all({s}, a, n); }}' for s in symbols
    )
    path = where / "loops.cpp"
    path.write_text(f"{source}\n{DRIVE}\n{runs}")
    library = where / "loops.so"
    flags = ["-O1", "-shared", "-fPIC", "-ffp-contract=off", "-std=c++17", "-w"]
    subprocess.run([str(COMPILER), *flags, str(path), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
