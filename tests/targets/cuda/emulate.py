"""Executes plans for GPUs on the processor: generated loops as the C++ that they are, compiled by the
machine's own compiler; layers by torch, from their description in the plan."""
# pyright: basic

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewbit.artifact import Folder
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.runtime.cuda import read_plan
from fewbit.runtime.native import dtype_of
from fewbit.targets.cuda.emit import BLOCK

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
    """A plan whose buffers are arrays; outputs and the arena start as rubbish."""

    def __init__(self, folder: Folder, where: Path) -> None:
        self.manifest = folder.manifest
        self.plan = read_plan(folder)
        text = json.loads(folder.file("plan.json").read_text())
        self.steps: list[dict[str, Any]] = text["steps"]
        self.memory = {
            name: np.full(buffer.bytes + 64, 0xA5, np.uint8)
            for name, buffer in self.plan.buffers.items()
        }
        weights = np.fromfile(folder.file(f"{self.manifest.name}.weights"), np.uint8)
        self.memory["weights"][: weights.size] = weights
        self.loops = _compile(folder.file(f"{self.manifest.name}.cu").read_text(), self, where)

    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        for i, array in enumerate(inputs):
            data = np.ascontiguousarray(array).view(np.uint8).ravel()
            self.memory[f"in{i}"][: data.size] = data
        launches = iter(self.plan.launches)
        for step in self.steps:
            first = next(launches)
            for _ in range(step.get("launches", 1) - 1):
                next(launches)
            if step["step"] == "loops":
                self._loops(first)
            else:
                self._layer(step)
        return tuple(
            self._array(f"out{i}", 0, dtype_of(t), t.shape)
            for i, t in enumerate(self.manifest.outputs)
        )

    def _array(self, buffer: str, offset: int, dtype: Any, shape: Any) -> np.ndarray:
        count = int(np.prod(shape))
        size = np.dtype(dtype).itemsize * count
        return self.memory[buffer][offset : offset + size].view(dtype).reshape(shape)

    def _loops(self, launch: Any) -> None:
        addresses = [self.memory[a.buffer].ctypes.data + a.offset for a in launch.arguments]
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        getattr(self.loops, f"run_{launch.symbol}")(
            given, ctypes.c_ulonglong(launch.grid[0] * BLOCK)
        )

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
        got = {n: self._array(*at, dtypes[n], shapes[n]) for n, at in step["operands"].items()}
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


def _compile(source: str, plan: Emulated, where: Path) -> ctypes.CDLL:
    symbols = dict.fromkeys(s.symbol for s in plan.plan.launches if s.image == 0)
    runs = "\n".join(
        f'extern "C" void run_{s}(void** a, u64 n) {{ all({s}, a, n); }}' for s in symbols
    )
    head, _, rest = source.partition("#endif")
    text = f"{head}#endif{rest}\n{DRIVE}\n{runs}"
    path = where / "loops.cpp"
    path.write_text(text)
    library = where / "loops.so"
    flags = ["-O1", "-shared", "-fPIC", "-ffp-contract=off", "-std=c++17", "-w"]
    subprocess.run([str(COMPILER), *flags, str(path), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
