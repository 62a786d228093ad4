"""A program as a plan: loops and layers one after another, each with its place in memory.

Memory has four kinds of buffers: inputs, outputs, weights, and an arena. A launch's arguments are
places in them. The plan holds the machine code and is plain data; the driver executes it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import loop_kinds
from fewbit.ir.bindings_locations import layer_suffix
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.cached_attention import THREADS as ATTENTION_THREADS
from fewbit.kernels.cuda.nvrtc import compile_source
from fewbit.kernels.cuda.plan import Argument, Buffer, Launch, Plan, Pointer, Scalar
from fewbit.kernels.cuda.prologue import Prologue as KernelPrologue
from fewbit.program.weight_image import Placed, WeightImage
from fewbit.targets.cuda.arena_values import ALIGNMENT, ArenaValues
from fewbit.targets.cuda.emit import PRELUDE, emit, keep_nest, store_nest
from fewbit.targets.cuda.evaluate import Evaluation
from fewbit.targets.cuda.fuse_loops import fuse_loops
from fewbit.targets.cuda.fused import Fused
from fewbit.targets.cuda.join_loops import Step, join_loops
from fewbit.targets.cuda.layer import Layer
from fewbit.targets.cuda.layers import Array, Call, choose
from fewbit.targets.cuda.memory import BYTES, Memory, dense
from fewbit.targets.cuda.nest import Nest
from fewbit.targets.cuda.prologue import write_prologue

if TYPE_CHECKING:
    from torch_mlir.ir import Module


WAITING = ("few_bit", "cached_attention")
"""Layers whose kernels wait for the launch before by themselves, as generated loops do."""


@dataclass
class Planner:
    """Collects what is left of the entry when it is executed on shapes."""

    module: Module
    entry: str
    layers: Mapping[str, Layer]
    arch: Arch
    weights: WeightImage
    """As the program reads them."""
    steps: list[Step] = field(default_factory=list[Step])
    arena: int = 0
    values: ArenaValues | None = None
    """What the arena holds, if layers have loops of their own."""
    later: list[frozenset[int]] = field(default_factory=list[frozenset[int]])
    """By steps, the values that steps behind it use."""

    def run(self, inputs: list[Memory], outputs: list[Memory]) -> None:
        weights = dense("weights", "i8", (self.weights.nbytes,))
        sizes = Evaluation(self.module, self._refuse, self._call, self._global)
        given = [*inputs, *outputs, weights]
        (self.arena,) = sizes.run(f"{self.entry}_arena_bytes", given)
        arena = dense("arena", "i8", (self.arena,))
        evaluation = Evaluation(self.module, self._launch, self._call, self._global, self._keep)
        evaluation.run(self.entry, [*given, arena])
        self._store_in_output()
        self._join(ArenaValues.find(evaluation.allocations, self.steps))

    def _join(self, values: ArenaValues | None) -> None:
        """Join steps into launches."""
        if values is None:
            self.steps = join_loops(self.steps)
            return
        self.steps = join_loops(fuse_loops(self.steps, values, self.arch))
        if not any(isinstance(step, Fused) for step in self.steps):
            return
        lives = values.lifetimes(self.steps)
        local = frozenset(
            value
            for value, (first, last) in lives.items()
            if first == last and isinstance(self.steps[first], Fused)
        )
        moves, self.arena = values.plan(self.steps, local)
        self.values = values.relocate(moves)
        before = list[Memory]()  # what the launch before writes
        for number, step in enumerate(self.steps):
            moved = step.move(partial(values.move, moves=moves))
            if isinstance(moved, Fused) and moved.call.kind == "cached_attention":
                moved = _look_early(moved, before)
            before = [m for m in moved.writes if values.of(m) not in local]
            self.steps[number] = moved
        self.later = [
            frozenset(value for value, (_, last) in lives.items() if last > number)
            for number in range(len(self.steps))
        ]

    def _store_in_output(self) -> None:
        """Let the step that computes an output write it, if it is copied there in the end."""
        if len(self.steps) < 2:
            return
        last, before = self.steps[-1], self.steps[-2]
        if not isinstance(last, Nest) or last.copies is None or last.copies.buffer != "arena":
            return
        source, target = last.copies, last.written[0]
        if [_place(m) for m in before.writes] != [_place(source)]:
            return
        if isinstance(before, Call):
            changed: Step = replace(before, operands={**before.operands, "y": target})
        elif not isinstance(before, Nest) or any(
            m is not before.written[0] and m.meets(source) for m in before.pointers
        ):
            return
        else:
            pointers = [target if _place(m) == _place(source) else m for m in before.pointers]
            changed = replace(before, pointers=pointers, written=[target])
        self.steps[-2:] = [changed]

    def _refuse(self, op: Any, evaluation: Evaluation) -> None:
        raise UnsupportedError("the size of the arena depends on what is computed")

    def _global(self, name: str, op: Any) -> Memory:
        """Return a table of numbers that stands in the text."""
        array = np.array(op.operation.attributes["initial_value"])
        known = {each.name: each for each in self.weights.entries}
        if name not in known:
            self.weights.add(name, array)
            known[name] = self.weights.entries[-1]
        type = op.operation.attributes["type"].value
        byte = known[name].offset
        return dense("weights", str(type.element_type), tuple(type.shape), byte)

    def _keep(self, load: Any, evaluation: Evaluation) -> Memory:
        """Keep a number that is read from memory: the arena may have another use for that soon."""
        element = evaluation.env[load.operands[0]].element
        start = -(-self.arena // ALIGNMENT) * ALIGNMENT
        place = evaluation.allocate(dense("arena", element, (1,), start))
        self.arena = start + ALIGNMENT
        self.steps.append(keep_nest(load, evaluation, place))
        return place

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
        sums = "reduction" in loop_kinds(op)
        fill = self._fill_value(outs) if sums else None
        nest = emit(op, evaluation, fill)
        if fill is not None:
            self.steps.pop()
        nest.layer = layer_suffix(op).strip("_")
        self.steps.append(nest)

    def _fill_value(self, outs: list[Memory]) -> float | None:
        """Return what the step before has filled the result with, and nothing else."""
        last = self.steps[-1] if self.steps else None
        if not isinstance(last, Nest) or last.fill is None or len(outs) != 1:
            return None
        (filled,), (out,) = last.written, outs
        same = _place(filled) == _place(out)
        return last.fill if same and filled.is_dense and out.is_dense else None


@dataclass
class Assembly:
    """The plan's parts: first what each step is and where its operands lie, then machine code."""

    planner: Planner
    inputs: list[Memory]
    outputs: list[Memory]
    weights: WeightImage = field(default_factory=WeightImage)
    """As kernels read them; only those that are read."""
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    """Names of generated kernels, by their texts."""
    described: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The steps as plain data: for readers, and for what executes them without a GPU."""
    prologues: dict[int, KernelPrologue] = field(default_factory=dict[int, KernelPrologue])
    """By the numbers of steps."""
    _placed: dict[Any, int] = field(default_factory=dict[Any, int])

    def __post_init__(self) -> None:
        for number, step in enumerate(self.planner.steps):
            if isinstance(step, Nest):
                self.described.append(self._describe_nest(step))
            elif isinstance(step, Call):
                self.described.append(self._describe_layer(step))
            else:
                self.described.append(self._describe_fused(number, step))

    @property
    def text(self) -> str:
        return self.source()

    def source(self) -> str:
        """Return all generated kernels; above them, which kernels of ours the layers have."""
        layers = [_comment(step) for step in self.described if "problem" in step]
        generated = (text.replace("@", n) for text, n in self.kernels.items())
        return "\n".join([*layers, PRELUDE, *generated])

    def buffers(self) -> dict[str, Buffer]:
        buffers = {m.buffer: _bytes(m, role) for m, role in _roles(self.inputs, self.outputs)}
        buffers["weights"] = Buffer("u8", (self.weights.nbytes,))
        buffers["arena"] = Buffer("u8", (self.planner.arena,), "work")
        return buffers

    def plan(self, name: str) -> Plan:
        """Compile everything."""
        arch, buffers = self.planner.arch, self.buffers()
        images = {compile_source(self.source(), arch, "--fmad=false").image: 0}
        launches: list[Launch] = []
        for number, (step, description) in enumerate(
            zip(self.planner.steps, self.described, strict=True)
        ):
            places = {n: Pointer(*at) for n, at in description["operands"].items()}
            if isinstance(step, Nest):
                grid = -(-step.threads // step.block), 1, 1
                arguments = tuple(places.values())
                launch = Launch(0, description["kernel"], grid, step.block, arguments)
                launches.append(replace(launch, early=arch.has_warpgroups))
                continue
            call = step if isinstance(step, Call) else step.call
            plan = call.plan(arch, self.prologues.get(number))
            for own, buffer in plan.buffers.items():
                if buffer.role == "work":
                    buffers[f"work{number}_{own}"] = buffer
                    places[own] = Pointer(f"work{number}_{own}")
            numbers = [images.setdefault(image, len(images)) for image in plan.images]
            launches += [
                replace(
                    launch,
                    image=numbers[launch.image],
                    arguments=tuple(_argument(a, places) for a in launch.arguments),
                    early=arch.has_warpgroups and call.kind in WAITING,
                )
                for launch in plan.launches
            ]
            description["launches"] = len(plan.launches)
        return Plan(name, arch.code, buffers, tuple(launches), tuple(images))

    def _describe_nest(self, nest: Nest) -> dict[str, Any]:
        if nest.text not in self.kernels:
            hint = re.sub(r"\W+", "_", nest.layer)
            self.kernels[nest.text] = f"loops_{len(self.kernels):03}{'_' if hint else ''}{hint}"
        operands = {f"p{i}": self._at(m) for i, m in enumerate(nest.pointers)}
        return {
            "step": "loops",
            "kernel": self.kernels[nest.text],
            "threads": nest.threads,
            "in_order": nest.in_order,
            "operands": operands,
        }

    def _describe_layer(self, call: Call, without: Mapping[str, int] = {}) -> dict[str, Any]:
        operands = {
            name: self._add_repacked(call, name, memory)
            if name in call.repacked
            else self._at(memory)
            for name, memory in call.operands.items()
            if name not in without
        }
        for name, array in call.added.items():
            operands[name] = self._add_constant(name, array)
        return {**call.describe(), "operands": operands}

    def _describe_fused(self, number: int, fused: Fused) -> dict[str, Any]:
        planner = self.planner
        assert planner.values is not None
        threads = fused.call.config.get("threads", ATTENTION_THREADS)
        made = write_prologue(fused, planner.values, planner.later[number], threads)
        if made.text not in self.kernels:
            hint = re.sub(r"\W+", "_", fused.call.layer)
            count = len(self.kernels)
            self.kernels[made.text] = f"prologue_{count:03}{'_' if hint else ''}{hint}"
        self.prologues[number] = KernelPrologue(
            f"{PRELUDE}\n{made.text.replace('@', 'prologue')}",
            made.types,
            made.shared,
            tuple(made.places.items()),
        )
        given = {f"p{i}": self._at(m) for i, m in enumerate(made.pointers)}
        described = self._describe_layer(fused.call, made.places)
        prologue = {
            "kernel": self.kernels[made.text],
            "shared": made.shared,
            "places": made.places,
            "operands": list(given),
        }
        described["operands"] |= given
        return {**described, "prologue": prologue}

    def _at(self, memory: Memory) -> list[Any]:
        """Return a place in a buffer of the plan."""
        if memory.buffer != "weights":
            return [memory.buffer, memory.byte]
        entry = self._entry(memory)
        if entry.offset not in self._placed:
            self._placed[entry.offset] = self.weights.add(entry.name, entry.array)
        return ["weights", self._placed[entry.offset] + memory.byte - entry.offset]

    def _entry(self, memory: Memory) -> Placed:
        """Return the constant that a place among the weights is in."""
        entries = self.planner.weights.entries
        return entries[bisect_right([e.offset for e in entries], memory.byte) - 1]

    def _add_repacked(self, call: Call, name: str, memory: Memory) -> list[Any]:
        """Return a constant as the kernel reads it."""
        if memory.buffer != "weights":
            raise UnsupportedError(f"the layer {call.layer} computes its weight while it runs")
        entry = self._entry(memory)
        key = entry.offset, call.kind, call.family, name, str(call.problem)
        if key not in self._placed:
            array = call.repacked[name](entry.array.reshape(memory.sizes))
            self._placed[key] = self.weights.add(f"{entry.name}.{call.family}", array)
        return ["weights", self._placed[key]]

    def _add_constant(self, name: str, array: Array) -> list[Any]:
        key = name, array.shape, array.tobytes()
        if key not in self._placed:
            self._placed[key] = self.weights.add(f"{name}.{len(self._placed)}", array)
        return ["weights", self._placed[key]]


def _look_early(fused: Fused, before: Sequence[Memory]) -> Fused:
    """Return attention, which may read its cache `early`, before the launch before ends.

    It may if that launch does not write there: all earlier ones have ended when a kernel starts.
    """
    read = [fused.call.operands[name] for name in ("k", "v", "seen")]
    early = not any(w.meets(m) for w in before for m in read)
    return Fused(fused.nests, replace(fused.call, config={"early": int(early)}))


def _argument(argument: Argument, places: Mapping[str, Pointer]) -> Argument:
    if isinstance(argument, Scalar):
        return argument
    pointer = places[argument.buffer]
    if isinstance(argument, Pointer):
        return pointer
    return replace(argument, buffer=pointer.buffer, offset=pointer.offset)


def _place(memory: Memory) -> tuple[Any, ...]:
    """Return what two names of the same elements have in common."""
    return memory.buffer, memory.byte, memory.element, memory.count, memory.shifts


def _roles(inputs: list[Memory], outputs: list[Memory]) -> list[tuple[Memory, Any]]:
    return [*((m, "in") for m in inputs), *((m, "out") for m in outputs)]


def _bytes(memory: Memory, role: Any) -> Buffer:
    return Buffer("u8", (memory.count * BYTES[memory.element],), role)


def _comment(step: dict[str, Any]) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in step["config"].items())
    how = f" ({settings})" if settings else ""
    return f"// {step['layer']}: {step['step']} {step['problem']} by {step['kernel']}{how}"
