"""A program on its way to a GPU, in stages that one can stop at and look into.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers that kernels compute, channels innermost |
| `linalg` | loops over tensors, and calls of kernels |
| `memref` | loops on memory, all of it planned |
| `cuda` | CUDA C++ of the loops; layers have kernels of their own |

Until memory is planned this is the way of the `cpu` target. Then the entry is executed on the
shapes of its inputs, and what is left to do is the plan.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr

from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.ir.bindings import mlir_context, run_upstream, to_mlir
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.kernels.cuda.arch import Arch
from fewbit.program import Program
from fewbit.signature import Signature, TensorSpec, signature_of
from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.cpu.bind_memory import bind_memory
from fewbit.targets.cpu.bound_lookups import bound_lookups
from fewbit.targets.cpu.carry_in_place import carry_in_place
from fewbit.targets.cpu.collapse_loops import collapse_loops
from fewbit.targets.cpu.outline_loops import copies_to_linalg
from fewbit.targets.cpu.place_outputs import place_outputs
from fewbit.targets.cpu.plan_memory import measure_before_collapse, plan_memory
from fewbit.targets.cpu.refuse_foreign import refuse_foreign
from fewbit.targets.cpu.shapes import drop_asserts, shape_function
from fewbit.targets.cpu.weights import WeightImage
from fewbit.targets.cuda.call_layers import FEW_ROWS, CallLayers, rows_of
from fewbit.targets.cuda.evaluate import Evaluation
from fewbit.targets.cuda.join_products import join_products
from fewbit.targets.cuda.layer import Layer, Precision
from fewbit.targets.cuda.memory import Memory, dense
from fewbit.targets.cuda.planner import Assembly, Planner
from fewbit.targets.kernel_stage import copy_of, entry_of, to_kernels
from fewbit.targets.own_passes import run_own_passes
from fewbit.targets.target import Inserted, Watcher
from fewbit.transforms import pipelines
from fewbit.transforms.fold_weights import fold_weights

ENTRY = "program.entry"
STAGES = ("mico", "kernel", "linalg", "memref", "cuda")
OURS = ("mico", "kernel", "linalg")

Shape = tuple[int, ...]


@dataclass
class Compilation:
    program: Program
    name: str
    arch: Arch
    precision: Precision = "f32"
    sizes: Sequence[Shape] | None = None
    """Of inputs; sizes that the program leaves open are 1 if they are not given."""
    inserted: Inserted = field(default_factory=dict)
    watch: Watcher | None = None

    layers: dict[str, Layer] = field(init=False)
    assembly: Assembly = field(init=False)
    inputs: tuple[Shape, ...] = field(init=False)
    outputs: tuple[Shape, ...] = field(init=False)
    signature: Signature = field(init=False)

    def __post_init__(self) -> None:
        self.signature = signature_of(self.program.module)
        self.inputs = fixed_shapes(self.signature.inputs, self.sizes)

    def run(self, last: str = STAGES[-1]) -> str:
        """Go through the stages; the text after the last."""
        text = ""
        for stage in STAGES[: STAGES.index(last) + 1]:
            getattr(self, f"_{stage}")()
            self._verify(stage)
            for each in self.inserted.get(stage, ()):
                self._insert(stage, each)
            if self.watch is not None or stage == last:
                text = self.text(stage)
            if self.watch is not None:
                self.watch(stage, text)
        return text

    def text(self, stage: str) -> str:
        if stage in OURS:
            return print_module(self.program.module)
        return str(self.module) if stage == "memref" else self.assembly.source()

    def _insert(self, stage: str, given: str | Callable[[Any], None]) -> None:
        ours = stage in OURS
        if callable(given):
            given(self.program.module if ours else self.module)
        elif ours:
            run_own_passes(self.program.module, (given,))
        else:
            run_upstream(self.module, given)
        self._verify(stage)

    def _verify(self, stage: str) -> None:
        if stage in OURS:
            verify(self.program.module, stage)
        elif stage == "memref":
            with mlir_context():
                self.module.operation.verify()

    @property
    def entry(self) -> func.FuncOp:
        return entry_of(self.program)

    def _mico(self) -> None:
        self.program = copy_of(self.program)

    def _kernel(self) -> None:
        size = prod(self._open_sizes())
        program = to_kernels(self.program, fold=False)
        self.program = join_products(program, lambda x: rows_of(x, size) <= FEW_ROWS)

    def _linalg(self) -> None:
        assert_kernel_sizes(self.entry)
        self.layers = CallLayers(
            self.program, self.precision, self.arch, prod(self._open_sizes())
        ).run()
        run_own_passes(self.program.module, pipelines.CPU_LINALG)
        self.program = fold_weights(self.program)
        assert_tensor_sizes(self.entry)

    def _memref(self) -> None:
        entry = self.entry
        refuse_foreign(entry)
        entry.properties["sym_name"] = StringAttr(ENTRY)
        self.outputs = self._output_shapes(entry)
        drop_asserts(entry)
        carry_in_place(entry)
        bound_lookups(entry)
        self.weights = WeightImage()
        bind_memory(self.program, entry, self.weights)
        self.module = to_mlir(self.program.module, "bind-memory")
        for passes in (pipelines.CPU_GENERIC, pipelines.CPU_TENSORS, pipelines.CPU_MEMORY):
            run_upstream(self.module, ",".join(passes))
        place_outputs(self.module, ENTRY)
        copies_to_linalg(self.module)
        measure_before_collapse(self.module, ENTRY)
        run_upstream(self.module, ",".join(pipelines.CUDA_LOOPS))
        collapse_loops(self.module, ENTRY)
        plan_memory(self.module, ENTRY)

    def _cuda(self) -> None:
        with mlir_context():
            planner = Planner(self.module, ENTRY, self.layers, self.arch, self.weights)
            inputs = self._memories("in", self.signature.inputs, self.inputs)
            outputs = self._memories("out", self.signature.outputs, self.outputs)
            planner.run(inputs, outputs)
            self.assembly = Assembly(planner, inputs, outputs)

    def _output_shapes(self, entry: func.FuncOp) -> tuple[Shape, ...]:
        """The shapes of outputs for those of inputs, if these agree with each other."""
        known = [spec.shape for spec in (*self.signature.inputs, *self.signature.outputs)]
        if not any(size is None for shape in known for size in shape or ()):
            return tuple(_known(spec) for spec in self.signature.outputs)
        shapes = shape_function(self.program.module, entry)
        with mlir_context():
            evaluation = Evaluation(shapes, _nothing_left, _nothing_left)
            *found, holds = evaluation.run(f"{ENTRY}_shapes", self._open_sizes())
        if not holds:
            given = ", ".join("x".join(map(str, shape)) for shape in self.inputs)
            raise ShapeError(f"inputs of {given} do not fit together")
        left = iter(found)
        return tuple(
            tuple(next(left) if size is None else size for size in spec.shape or ())
            for spec in self.signature.outputs
        )

    def _open_sizes(self) -> list[int]:
        """What was given where the program leaves a size open."""
        return [
            size
            for spec, shape in zip(self.signature.inputs, self.inputs, strict=True)
            for size, known in zip(shape, spec.shape or (), strict=True)
            if known is None
        ]

    def _memories(
        self, kind: str, specs: Sequence[TensorSpec], shapes: Sequence[Shape]
    ) -> list[Memory]:
        return [
            dense(f"{kind}{i}", element_of(spec), shape)
            for i, (spec, shape) in enumerate(zip(specs, shapes, strict=True))
        ]


def element_of(spec: TensorSpec) -> str:
    """The type of an input's or output's elements in memory."""
    return "i8" if spec.element.startswith("!mico") else spec.element.lstrip("su")


def fixed_shapes(inputs: Sequence[TensorSpec], sizes: Sequence[Shape] | None) -> tuple[Shape, ...]:
    """A shape for each input, as the program has it and, where that is open, as it was given."""
    if sizes is not None and len(sizes) != len(inputs):
        raise UsageError(f"the program has {len(inputs)} inputs, and {len(sizes)} sizes were given")
    found: list[Shape] = []
    for i, spec in enumerate(inputs):
        known = spec.shape or ()
        given = tuple(1 if d is None else d for d in known) if sizes is None else tuple(sizes[i])
        fits = len(given) == len(known) and all(
            d in (None, size) for d, size in zip(known, given, strict=True)
        )
        if not fits:
            raise ShapeError(f"the size {'x'.join(map(str, given))} does not fit input {spec}")
        found.append(given)
    return tuple(found)


def _known(spec: TensorSpec) -> Shape:
    return tuple(size for size in spec.shape or () if size is not None)


def _nothing_left(*_: Any) -> None:
    raise UnsupportedError("the size of an output depends on what is computed")
