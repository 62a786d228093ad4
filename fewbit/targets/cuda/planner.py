"""A program as a plan: loops and layers one after another, each with its place in memory.

Memory has four kinds of buffers: inputs, outputs, weights, and an arena. A launch's arguments are
places in them. The plan holds the machine code and is plain data; the driver executes it.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.nvrtc import compile_source
from fewbit.kernels.cuda.plan import Argument, Buffer, Launch, Plan, Pointer, Scalar
from fewbit.targets.cpu.outline_loops import layer_hint
from fewbit.targets.cpu.weights import Placed, WeightImage
from fewbit.targets.cuda.call_layers import Layer
from fewbit.targets.cuda.emit import BLOCK, PRELUDE, Nest, emit, store_nest
from fewbit.targets.cuda.evaluate import Evaluation
from fewbit.targets.cuda.layers import Call, choose
from fewbit.targets.cuda.memory import BYTES, Memory, dense

if TYPE_CHECKING:
    from torch_mlir.ir import Module

Step = Nest | Call
PACKED = "packed"
"""Weights at their place in the plan's image, not in the program's."""


@dataclass
class Planner:
    """Collects what is left of the entry when it is executed on shapes."""

    module: Module
    entry: str
    layers: Mapping[str, Layer]
    arch: Arch
    weights: WeightImage
    """As the program reads them."""
    steps: list[Step] = field(default_factory=list)
    arena: int = 0

    def run(self, inputs: list[Memory], outputs: list[Memory]) -> None:
        weights = dense("weights", "i8", (self.weights.nbytes,))
        sizes = Evaluation(self.module, self._refuse, self._call, self._global)
        given = [*inputs, *outputs, weights]
        (self.arena,) = sizes.run(f"{self.entry}_arena_bytes", given)
        arena = dense("arena", "i8", (self.arena,))
        evaluation = Evaluation(self.module, self._launch, self._call, self._global)
        evaluation.run(self.entry, [*given, arena])
        self._store_in_output()

    def _store_in_output(self) -> None:
        """Let the step that computes an output write it, if it is copied there in the end."""
        if len(self.steps) < 2:
            return
        last, before = self.steps[-1], self.steps[-2]
        if not isinstance(last, Nest) or last.copies is None or last.copies.buffer != "arena":
            return
        source, target = last.copies, last.written[0]
        written = [before.operands["y"]] if isinstance(before, Call) else before.written
        if [_place(m) for m in written] != [_place(source)]:
            return
        if isinstance(before, Call):
            changed: Step = replace(before, operands={**before.operands, "y": target})
        elif any(m is not written[0] and m.meets(source) for m in before.pointers):
            return
        else:
            pointers = [target if _place(m) == _place(source) else m for m in before.pointers]
            changed = replace(before, pointers=pointers, written=[target])
        self.steps[-2:] = [changed]

    def _refuse(self, op: Any, evaluation: Evaluation) -> None:
        raise UnsupportedError("the size of the arena depends on what is computed")

    def _global(self, name: str, op: Any) -> Memory:
        """A table of numbers that stands in the text."""
        array = np.array(op.operation.attributes["initial_value"])
        known = {each.name: each for each in self.weights.entries}
        if name not in known:
            self.weights.add(name, array)
            known[name] = self.weights.entries[-1]
        type = op.operation.attributes["type"].value
        byte = known[name].offset
        return dense("weights", str(type.element_type), tuple(type.shape), byte)

    def _call(self, name: str, memories: list[Memory]) -> None:
        self.steps.append(choose(self.layers[name], memories, self.arch))

    def _launch(self, op: Any, evaluation: Evaluation) -> None:
        if op.operation.name == "memref.store":
            self.steps.append(store_nest(op, evaluation))
            return
        if op.operation.name != "linalg.generic":
            raise UnsupportedError(f"the target cuda has no code for '{op.operation.name}'")
        outs = [evaluation.env[v] for v in op.outputs]
        if any(0 in m.sizes for m in outs):
            return
        sums = "reduction" in str(op.operation.attributes["iterator_types"])
        fill = self._filled(outs) if sums else None
        made = emit(op, evaluation, fill)
        if fill is not None:
            self.steps.pop()
        made.layer = layer_hint(op).strip("_")
        self.steps.append(made)

    def _filled(self, outs: list[Memory]) -> float | None:
        """What the step before has filled the result with, and nothing else."""
        last = self.steps[-1] if self.steps else None
        if not isinstance(last, Nest) or last.fill is None or len(outs) != 1:
            return None
        (filled,), (out,) = last.written, outs
        same = _place(filled) == _place(out)
        return last.fill if same and filled.is_dense and out.is_dense else None


@dataclass
class Assembly:
    """The plan's parts, put together step by step."""

    planner: Planner
    weights: WeightImage = field(default_factory=WeightImage)
    """As kernels read them; only those that are read."""
    kernels: dict[str, str] = field(default_factory=dict)
    """Names of generated kernels, by their texts."""
    images: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    """Their numbers; the first is that of all generated kernels, compiled in the end."""
    launches: list[Launch] = field(default_factory=list)
    described: list[dict[str, Any]] = field(default_factory=list)
    work: dict[str, Buffer] = field(default_factory=dict)
    _placed: dict[Any, int] = field(default_factory=dict)

    def run(self, inputs: list[Memory], outputs: list[Memory], name: str) -> Plan:
        planner = self.planner
        plans = [s.plan(planner.arch) if isinstance(s, Call) else None for s in planner.steps]
        for step, plan in zip(planner.steps, plans, strict=True):
            if isinstance(step, Nest):
                self._nest(step)
            else:
                assert plan is not None
                self._layer(step, plan)
        generated = compile_source(self.source(), planner.arch, "--fmad=false").image
        images = [generated, *list(self.images)[1:]]
        buffers = {m.buffer: _bytes(m, role) for m, role in _roles(inputs, outputs)}
        buffers["weights"] = Buffer("u8", (self.weights.nbytes,))
        buffers["arena"] = Buffer("u8", (planner.arena,), "work")
        return Plan(
            name, planner.arch.code, {**buffers, **self.work}, tuple(self.launches), tuple(images)
        )

    def source(self) -> str:
        """All generated kernels."""
        return "\n".join([PRELUDE, *(text.replace("@", n, 1) for text, n in self.kernels.items())])

    def _nest(self, nest: Nest) -> None:
        if nest.text not in self.kernels:
            hint = re.sub(r"\W+", "_", nest.layer)
            self.kernels[nest.text] = f"loops_{len(self.kernels):03}{'_' if hint else ''}{hint}"
        symbol = self.kernels[nest.text]
        pointers = tuple(self._pointer(m) for m in nest.pointers)
        grid = -(-nest.threads // BLOCK), 1, 1
        self.launches.append(Launch(0, symbol, grid, BLOCK, pointers))
        self.described.append({"step": "loops", "layer": nest.layer, "kernel": symbol})

    def _layer(self, call: Call, plan: Plan) -> None:
        number = len(self.described)
        places = {n: self._weight(call, m) if n == "w" else m for n, m in call.operands.items()}
        for name, buffer in plan.buffers.items():
            if buffer.role == "work" and name not in places:
                own = f"work{number}_{name}"
                self.work[own] = buffer
                places[name] = dense(own, "i8", (buffer.bytes,))
        offset = [self.images.setdefault(image, len(self.images)) for image in plan.images]
        for launch in plan.launches:
            arguments = tuple(self._argument(a, places) for a in launch.arguments)
            self.launches.append(
                replace(launch, image=offset[launch.image], arguments=arguments)
            )
        self.described.append(_description(call, len(plan.launches), self, places))

    def _argument(self, argument: Argument, places: Mapping[str, Memory]) -> Argument:
        if isinstance(argument, Scalar):
            return argument
        found = self._pointer(places[argument.buffer])
        if isinstance(argument, Pointer):
            return found
        return replace(argument, buffer=found.buffer, offset=found.offset)

    def _pointer(self, memory: Memory) -> Pointer:
        if memory.buffer == PACKED:
            return Pointer("weights", memory.byte)
        if memory.buffer != "weights":
            return Pointer(memory.buffer, memory.byte)
        entry = self._entry(memory)
        if entry.offset not in self._placed:
            self._placed[entry.offset] = self.weights.add(entry.name, entry.array)
        return Pointer("weights", self._placed[entry.offset] + memory.byte - entry.offset)

    def _entry(self, memory: Memory) -> Placed:
        """The constant that a place among the weights is in."""
        entries = self.planner.weights.entries
        return entries[bisect_right([e.offset for e in entries], memory.byte) - 1]

    def _weight(self, call: Call, memory: Memory) -> Memory:
        """Filters as the kernel reads them, in a buffer of that name."""
        if call.family != "depthwise":
            return memory
        if memory.buffer != "weights":
            raise UnsupportedError("a depthwise layer computes its filters while it runs")
        entry = self._entry(memory)
        key = entry.offset, "depthwise"
        if key not in self._placed:
            array = call.weight(entry.array.reshape(memory.sizes))
            self._placed[key] = self.weights.add(f"{entry.name}.depthwise", array)
        return dense(PACKED, "i8", (1,), self._placed[key])


def _place(memory: Memory) -> tuple[Any, ...]:
    """What two names of the same elements have in common."""
    return memory.buffer, memory.byte, memory.element, memory.count, memory.shifts


def _roles(inputs: list[Memory], outputs: list[Memory]) -> list[tuple[Memory, Any]]:
    return [*((m, "in") for m in inputs), *((m, "out") for m in outputs)]


def _bytes(memory: Memory, role: Any) -> Buffer:
    return Buffer("u8", (memory.count * BYTES[memory.element],), role)


def _description(
    call: Call, launches: int, assembly: Assembly, places: Mapping[str, Memory]
) -> dict[str, Any]:
    """For readers, and for what executes a plan without a GPU."""
    p, e = call.problem, call.problem.epilogue
    return {
        "step": "max_pool" if call.family == "max_pool" else "conv2d",
        "kernel": call.family,
        "launches": launches,
        "problem": str(p),
        "dtype": p.dtype,
        "config": dict(call.config),
        "bounds": [None, None]
        if e is None
        else [b if isfinite(b) else None for b in (e.low, e.high)],
        "operands": {
            name: [found.buffer, found.offset]
            for name, found in ((n, assembly._pointer(m)) for n, m in places.items())
        },
    }
