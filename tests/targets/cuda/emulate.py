"""Executes plans for GPUs on the processor: generated loops as the C++ that they are, compiled by the
machine's own compiler; layers by torch, from their description in the plan."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewbit.base.typed_torch import from_numpy
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.few_bit import FewBitMatmul, shifts_of
from fewbit.kernels.cuda.unfold import Unfold
from fewbit.numerics.widths import Width
from fewbit.pipeline.compilation import Compilation
from fewbit.targets.cuda.find_output_shapes import OutputShapes
from fewbit.targets.cuda.settings import GpuSettings

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


class Steps:
    """The steps of a plan, executed on buffers that are arrays."""

    def __init__(
        self,
        steps: list[dict[str, Any]],
        memory: dict[str, np.ndarray],
        source: str,
        where: Path,
    ) -> None:
        self.steps, self.memory = steps, memory
        symbols = dict.fromkeys(step["kernel"] for step in steps if step["step"] == "loops")
        symbols |= dict.fromkeys(s["prologue"]["kernel"] for s in steps if "prologue" in s)
        self.loops = _compile(source, symbols, where)

    def run(self) -> None:
        for step in self.steps:
            if "prologue" in step:
                self._prologue(step)
            getattr(self, f"_{step['step']}", self._layer)(step)

    def _array(self, buffer: str, offset: int, dtype: Any, shape: Any) -> np.ndarray:
        size = np.dtype(dtype).itemsize * prod(shape)
        return self.memory[buffer][offset : offset + size].view(dtype).reshape(shape)

    def _prologue(self, step: dict[str, Any]) -> None:
        """Execute what every block of a layer begins with: a late block, the first, a later one.

        Only the first may change what is not the layer's own, and all make the same.
        """
        made: list[np.ndarray] = []
        own = {step["operands"][n][0] for n in ("k", "v") if n in step["operands"]}
        for first in (0, 1, 0):
            before = {n: m.copy() for n, m in self.memory.items() if n not in {*own, "shared"}}
            shared = np.full(step["prologue"]["shared"] + 16, 0x5A, np.uint8)
            shared = shared[-shared.ctypes.data % 16 :][: step["prologue"]["shared"]]
            places = [step["operands"][name] for name in step["prologue"]["operands"]]
            given = [self.memory[buffer].ctypes.data + offset for buffer, offset in places]
            addresses = (ctypes.c_void_p * (2 + len(given)))(shared.ctypes.data, first, *given)
            getattr(self.loops, f"run_{step['prologue']['kernel']}")(
                addresses, ctypes.c_ulonglong(1)
            )
            if not first:
                for name, memory in before.items():
                    np.testing.assert_array_equal(self.memory[name], memory)
            made.append(shared)
        for other in made[1:]:
            np.testing.assert_array_equal(other, made[0])
        self.memory["shared"] = made[0]

    def _operand(self, step: dict[str, Any], name: str, dtype: Any, shape: Any) -> np.ndarray:
        places: dict[str, int] = step["prologue"]["places"] if "prologue" in step else {}
        if name in places:
            return self._array("shared", places[name], dtype, shape)
        buffer, offset = step["operands"][name]
        return self._array(buffer, offset, dtype, shape)

    def _loops(self, step: dict[str, Any]) -> None:
        places = step["operands"].values()
        addresses = [self.memory[buffer].ctypes.data + offset for buffer, offset in places]
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        threads = 1 if step["in_order"] else step["threads"]
        getattr(self.loops, f"run_{step['kernel']}")(given, ctypes.c_ulonglong(threads))

    def _few_bit(self, step: dict[str, Any]) -> None:
        form = r"m(\d+),n(\d+),k(\d+),w([\d.]+)a\d+,g(\d+)"
        ((*sizes, width, group),) = re.findall(form, step["problem"])
        m, n, k = map(int, sizes)
        problem = FewBitMatmul(m, n, k, Width.of(width), k // int(group), step["dtype"], "f32")
        types = {"f16": np.float16, "i8": np.int8, "i32": np.uint32, "f32": np.float32}
        got = {
            name: self._operand(step, name, types[b.dtype], b.shape)
            for name, b in problem.buffers().items()
        }
        q = decoded(problem, got["q"])
        scale = got["scale"][: problem.groups, :n].T.astype(np.float64)
        x = got["x"].astype(np.float64).reshape(m, problem.groups, -1)
        parts = np.einsum("mgk,ngk->mng", x, q.reshape(n, problem.groups, -1))
        rows = got["row_scale"][:, None] if problem.dtype == "i8" else 1
        got["y"][...] = (parts * scale).sum(-1) * rows

    def _attention(self, step: dict[str, Any]) -> None:
        b, h, sq, sk, d = map(int, step["problem"].split(",")[0].split("x"))
        kv = int((re.findall(r",kv(\d+)", step["problem"]) or [h])[0])
        sizes = {"q": (b, h, sq, d), "y": (b, h, sq, d), "k": (b, kv, sk, d), "v": (b, kv, sk, d)}
        got: dict[str, np.ndarray] = {}
        for i, (name, shape) in enumerate((n, sizes[n]) for n in "qkvy"):
            steps = (shape[1] * shape[2] * d, shape[2] * d, d)
            steps = step["strides"][i] if step["strides"] else steps
            buffer, offset = step["operands"][name]
            memory = self.memory[buffer][offset:][: (self.memory[buffer].size - offset) // 2 * 2]
            strides = [2 * s for s in (*steps, 1)]
            got[name] = np.lib.stride_tricks.as_strided(memory.view(np.float16), shape, strides)
        q, k, v = (from_numpy(got[n].astype(np.float64)) for n in "qkv")
        k, v = (t.repeat_interleave(h // kv, 1) for t in (k, v))
        causal = ",causal" in step["problem"]
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        got["y"][...] = y.numpy()

    def _cached_attention(self, step: dict[str, Any]) -> None:
        ((h, r, t, d),) = re.findall(r"h(\d+),r(\d+),t(\d+),d(\d+)", step["problem"])
        h, r, t, d = int(h), int(r), int(t), int(d)
        kept = DTYPES[step["dtype"]]
        shapes = {"q": (h, r, d), "k": (h, t // 64, d, 64), "v": (h, t, d), "y": (h, r, d)}
        types = {"k": kept, "v": kept}
        got = {n: self._operand(step, n, types.get(n, np.float32), s) for n, s in shapes.items()}
        seen = self._operand(step, "seen", np.bool_, (r, t))
        keys = got["k"].swapaxes(2, 3).reshape(h, t, d).astype(np.float64)
        wanted = np.any(seen, axis=0).reshape(-1, 1)
        values = np.where(wanted, got["v"].astype(np.float64), 0)
        scores = got["q"].astype(np.float64) @ np.where(wanted, keys, 0).swapaxes(1, 2)
        scores = np.where(seen, scores * step["scale"], -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        got["y"][...] = weights / weights.sum(-1, keepdims=True) @ values

    def _unfold(self, step: dict[str, Any]) -> None:
        """Go by the kernel's text, index by index."""
        p = Unfold(Convolution.parse(step["problem"]).of(step["dtype"], "nhwc"))
        shapes = {name: b.shape for name, b in p.buffers().items()}
        x = self._operand(step, "x", np.float32, shapes["x"])
        y = self._operand(step, "y", DTYPES[p.of.dtype], shapes["y"])
        (sh, sw), (ph, pw) = p.of.stride, p.of.padding
        wide = np.pad(x, ((0, 0), (0, 0), (ph, ph + 16), (pw, pw + 16)))
        y[...] = 0
        for inner in range(p.inner):
            a, kw, c = np.unravel_index(inner, (sh, p.of.kw, p.of.channels))
            rows = a + sh * np.arange(p.rows)
            columns = kw + sw * np.arange(p.of.out_width)
            y[..., inner] = wide[:, c][:, rows][:, :, columns]

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
        x = from_numpy(got["x"].copy()).double().permute(0, 3, 1, 2)
        if step["step"] == "max_pool":
            y = torch.nn.functional.max_pool2d(x, (p.kh, p.kw), p.stride, p.padding)
        else:
            w = from_numpy(got["w"].copy()).double()
            w = w.permute(2, 0, 1)[:, None] if w.ndim == 3 else w.permute(0, 3, 1, 2)
            y = torch.nn.functional.conv2d(x, w, None, p.stride, p.padding, p.dilation, p.groups)
        y = y.permute(0, 2, 3, 1)
        if "bias" in got:
            y = y + from_numpy(got["bias"].copy()).double()
        if "add" in got:
            y = y + from_numpy(got["add"].copy()).double()
        low, high = step["bounds"]
        got["y"][...] = y.clamp(low, high).numpy() if (low, high) != (None, None) else y.numpy()


class Emulated(Steps):
    """A program whose buffers are arrays; outputs and the arena start as rubbish."""

    def __init__(self, made: Compilation, where: Path) -> None:
        self.made = made
        memory = {
            name: np.full(buffer.bytes + 64, 0xA5, np.uint8)
            for name, buffer in made.module.buffers().items()
        }
        weights = np.frombuffer(made.module.weights.tobytes(), np.uint8)
        memory["weights"][: weights.size] = weights
        super().__init__(made.module.described, memory, made.module.source(), where)

    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        for i, array in enumerate(inputs):
            data = np.ascontiguousarray(array).view(np.uint8).ravel()
            kind = "state" if f"state{i}" in self.memory else "in"
            self.memory[f"{kind}{i}"][: data.size] = data
        self.run()
        signature = self.made.ctx.get(GpuSettings).signature
        specs, names = signature.outputs, [spec.name for spec in signature.inputs]
        shapes = self.made.ctx.get(OutputShapes).shapes
        return tuple(
            self._array(
                f"out{i}" if spec.updates is None else f"state{names.index(spec.updates)}",
                0,
                spec.dtype,
                shape,
            ).copy()
            for i, (spec, shape) in enumerate(zip(specs, shapes, strict=True))
        )


def decoded(problem: FewBitMatmul, words: np.ndarray) -> np.ndarray:
    """The integers that were arranged for the lanes of a warp."""
    bits, unit = problem.bits, problem.unit
    per, loads = 4 // unit, problem.depth // (2 * problem.step)
    quarters = words.reshape(problem.blocks, -1, problem.words // 4, 32, 4).swapaxes(2, 3)
    lanes = quarters.reshape(problem.blocks, -1, 32, problem.words)
    fields = lanes[..., None, None] >> shifts_of(bits, per) & np.uint32((1 << bits) - 1)
    split = fields.reshape(problem.blocks, -1, 8, 4, loads, 2, 2, 2, per)
    split = split.transpose(0, 7, 2, 1, 4, 3, 5, 6, 8)
    if problem.narrow:
        split = split.swapaxes(5, 6)
    rows = split.reshape(problem.blocks * 16, -1)
    half = 1 << (bits - 1)
    signed = rows.astype(np.int64)
    signed = signed - half if unit == 2 else (signed ^ half) - half
    return signed[: problem.n, : problem.k]


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
